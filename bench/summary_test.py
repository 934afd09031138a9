"""The text at the end of a run: the choices are the page's, the numbers those of the files."""

import tempfile
import unittest

from bench import runner, summary
from reports import host_cost, load, ranking, sample

SEED = 5
MIB = 1 << 20


def set_peaks(files, trace, peaks):
    """Gives the runs of TRACE these peaks of reserved memory."""
    for benchmark in files["replay.json"]["benchmarks"]:
        _, name, config = benchmark["name"].split("/")[:3]
        if name == trace:
            benchmark["peak_reserved_bytes"] = peaks[config] * MIB
            benchmark["peak_allocated_bytes"] = MIB


class Summary(unittest.TestCase):
    def setUp(self):
        self.files = sample.make(SEED, ["alpha", "beta"])
        for trace, split in (("alpha", 300), ("beta", 399)):
            set_peaks(self.files, trace, {"default": 400, "split128": split, "direct": 10})
        del self.files["replay_memory.json"]  # which has peaks of its own

    def lines(self, make=summary.all_lines):
        with tempfile.TemporaryDirectory() as folder:
            sample.write(folder, self.files)
            self.results = load.load(folder)
            return make(folder)

    def row(self, lines, first):
        return next(line.split() for line in lines if line.split()[:1] == [first])

    def test_choices_are_the_pages(self):
        lines = self.lines()
        for trace in self.results.traces:
            choice = ranking.judge(self.results.runs_of(trace)).choice
            self.assertEqual(self.row(lines, trace)[1], choice.config_name)
        expected = "alpha split128 300 MiB 400 MiB 25.0 %"
        self.assertEqual(self.row(lines, "alpha"), expected.split())
        # 0.25 % less is not worth a setting.
        self.assertEqual(self.row(lines, "beta"), "beta default 400 MiB 400 MiB -".split())

    def test_settings_show_the_geometric_mean_and_how_often_they_are_near_the_best(self):
        lines = self.lines()
        # The root of 300/400 * 399/400.
        self.assertEqual(self.row(lines, "split128")[:5], "split128 0.865x in 2 of".split())
        self.assertEqual(self.row(lines, "default")[:5], "default 1.000x in 1 of".split())
        self.assertEqual(self.row(lines, "direct")[:3], "direct 0.025x -".split())
        self.assertTrue(any(line.endswith("(no cache: a limit)") for line in lines))

    def test_host_time_is_that_of_all_events(self):
        for benchmark in self.files["replay.json"]["benchmarks"]:
            long = "alpha" in benchmark["name"]
            benchmark.update(events=900 if long else 100, ns_per_event=50 if long else 150)
        self.assertEqual(self.row(self.lines(), "default")[5:8], ["2", "60.0", "ns"])

    def test_one_trace_gets_the_pages_sentence(self):
        self.files["replay.json"]["benchmarks"] = [
            one for one in self.files["replay.json"]["benchmarks"] if "alpha" in one["name"]
        ]
        text = " ".join(self.lines(summary.replay_lines))
        expected = "Run split128: it reserves 300 MiB at its peak, 100 MiB (25.0 %) less"
        self.assertTrue(text.startswith(expected), text)

    def test_out_of_memory_is_said(self):
        for benchmark in self.files["replay.json"]["benchmarks"]:
            benchmark.update(out_of_memory=1, out_of_memory_event=7)
        lines = self.lines()
        self.assertEqual(self.row(lines, "alpha"), "alpha none finishes - out of memory -".split())
        self.assertIn("in 2 of 2", next(line for line in lines if "max_split_size_mb" in line))

    def test_host_cost_is_a_table(self):
        benchmarks = self.files["host_cost.json"]["benchmarks"]
        caching = next(one for one in benchmarks if one["name"] == "host_cost/caching/pair/512")
        caching.update(real_time=123, x_mutex_list=3.25)
        row = self.row(self.lines(), "pair,")
        time = row[3 + 2 * list(host_cost.SUBJECTS).index("caching")]  # each with its unit
        self.assertEqual(row[:3] + [time] + row[-1:], ["pair,", "512", "B", "123", "3.25x"])

    def test_replay_speed_is_a_sentence(self):
        (caching, mutex, _) = self.files["replay_speed.json"]["benchmarks"]
        caching.update(events=1000000, ns_per_event=60, events_per_second=1e9 / 60)
        mutex.update(ns_per_event=15)
        text = " ".join(self.lines())
        self.assertIn("1,000,000 allocations and frees does 16.7 million events/s: 60.0 ns", text)
        self.assertIn("4.00x the time of a free list under one mutex.", text)

    def test_lines_are_ascii_and_of_terminal_width(self):
        for line in self.lines():
            self.assertTrue(line.isascii(), line)
            self.assertLessEqual(len(line), 100, line)

    def test_results_that_cannot_be_read_end_the_program_with_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            sample.write(folder, {"replay.json": "{"})
            with self.assertRaises(runner.Stop) as stopped:
                summary.all_lines(folder)
        self.assertEqual(stopped.exception.status, 2)
        self.assertIn("replay.json", stopped.exception.message)


if __name__ == "__main__":
    unittest.main()
