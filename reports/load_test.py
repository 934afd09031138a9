"""What is read from result files, and what is said about files that cannot be read."""

import copy
import json
import os
import random
import tempfile
import unittest

from reports import load, sample

SEED = 11


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        self.files = sample.make(SEED)

    def load(self, names=None):
        files = {name: self.files[name] for name in names or self.files}
        sample.write(self.folder, files)
        return load.load(self.folder)

    def complaint(self):
        """The one line about this folder."""
        with self.assertRaises(load.ResultError, msg=f"seed {SEED}") as caught:
            self.load()
        text = str(caught.exception)
        self.assertNotIn("\n", text)
        self.assertIn(self.folder, text)
        self.assertIn("expected", text)
        return text


class Reading(Folder):
    def test_the_two_replay_files_are_joined(self):
        results = self.load()
        self.assertEqual(results.traces, ["alpha", "beta"])
        self.assertEqual(len(results.runs), 2 * len(sample.CONFIGS))
        self.assertEqual(results.notes, [])
        for run, benchmark in zip(results.runs, self.files["replay.json"]["benchmarks"]):
            self.assertEqual(run.peak_reserved_bytes, benchmark["peak_reserved_bytes"])
            calls = benchmark["device_mallocs"] + benchmark["device_frees"]
            self.assertEqual(run.device_calls, calls)
            self.assertAlmostEqual(run.fragmentation, benchmark["fragmentation"])
            self.assertEqual(run.memory.streams[1].peak_idle_bytes, 34 << 20)
            self.assertEqual(run.limit_bytes, 80 << 30)

    def test_host_costs_in_any_unit_become_nanoseconds(self):
        first = self.files["host_cost.json"]["benchmarks"][0]
        nanoseconds = first["real_time"]
        first.update(real_time=nanoseconds / 1000, time_unit="us")
        self.assertAlmostEqual(self.load().host_costs[0].real_ns, nanoseconds)

    def test_repetitions_are_joined_by_the_fastest_and_aggregates_left_out(self):
        benchmarks = self.files["host_cost.json"]["benchmarks"]
        count = len(benchmarks)
        again = copy.deepcopy(benchmarks[0])
        again.update(name=again["name"] + "/repeats:3", real_time=again["real_time"] / 2)
        mean = copy.deepcopy(benchmarks[0])
        mean.update(run_type="aggregate", real_time=0.001)
        fastest = again["real_time"]
        benchmarks += [again, mean]
        costs = self.load().host_costs
        self.assertEqual(len(costs), count)
        self.assertEqual(costs[0].real_ns, fastest)

    def test_each_file_alone_is_a_result(self):
        for name in load.FILES:
            with tempfile.TemporaryDirectory() as folder:
                sample.write(folder, {name: self.files[name]})
                results = load.load(folder)
                costs = results.host_costs or results.two_threads or results.replay_speeds
                self.assertTrue(results.runs or costs or results.workloads)

    def test_without_replay_json_peaks_come_from_the_curves(self):
        results = self.load(["replay_memory.json"])
        series = self.files["replay_memory.json"]["runs"][0]["series"]
        self.assertEqual(results.runs[0].peak_reserved_bytes, max(series["reserved_bytes"]))
        self.assertIsNone(results.runs[0].device_calls)
        self.assertIn("replay.json is absent", results.notes[0])

    def test_a_configuration_that_a_trace_lacks_is_noted(self):
        del self.files["replay.json"]["benchmarks"][-1]
        del self.files["replay_memory.json"]["runs"][-1]
        self.assertEqual(self.load().notes, ["beta was not run under direct."])

    def test_files_that_disagree_are_noted(self):
        self.files["replay.json"]["benchmarks"][0]["peak_reserved_bytes"] += 512
        notes = self.load().notes
        self.assertEqual(len(notes), 1)
        self.assertIn("alpha under default", notes[0])

    def test_a_fraction_limits_what_may_be_reserved(self):
        self.files["replay.json"]["benchmarks"][0]["memory_fraction"] = 0.25
        self.assertEqual(self.load().runs[0].limit_bytes, 20 << 30)

    def test_no_capacity_is_no_limit(self):
        self.files["replay.json"]["benchmarks"][0]["capacity_bytes"] = 0
        self.assertIsNone(self.load().runs[0].limit_bytes)


class Complaints(Folder):
    def test_no_folder_and_no_results(self):
        for path, text in ((self.folder + "/none", "does not exist"), (self.folder, "no results")):
            with self.assertRaisesRegex(load.ResultError, text):
                load.load(path)
        path = os.path.join(self.folder, "file")
        sample.write(self.folder, {"file": "text"})
        with self.assertRaisesRegex(load.ResultError, "is not a folder"):
            load.load(path)

    def test_an_empty_file(self):
        self.files["replay.json"] = ""
        self.assertIn("replay.json: the file is empty", self.complaint())

    def test_not_json(self):
        self.files["replay.json"] = "{'context'"
        self.assertIn("line 1, column 2", self.complaint())

    def test_nested_too_deeply(self):
        self.files["replay.json"] = "[" * 200000
        self.assertIn("nested too deeply", self.complaint())

    def test_not_utf8(self):
        with open(os.path.join(self.folder, "host_cost.json"), "wb") as file:
            file.write(b'{"context": "\xff"}')
        del self.files["host_cost.json"]
        self.assertIn("is not UTF-8", self.complaint())

    def test_another_schema(self):
        self.files["replay.json"]["context"] = {**sample.CONTEXT, "tidemark_schema": "2"}
        self.assertIn('"tidemark_schema" is 2; expected 1', self.complaint())

    def test_another_memory_schema(self):
        self.files["replay_memory.json"]["schema"] = "tidemark-memory-9"
        self.assertIn("tidemark-memory-9", self.complaint())

    def test_a_missing_counter_is_named_with_its_benchmark(self):
        del self.files["replay.json"]["benchmarks"][1]["retries"]
        text = self.complaint()
        self.assertIn('benchmarks[1] (replay/alpha/split128): "retries" is missing', text)

    def test_not_a_number_and_infinite(self):
        for value, text in ((float("nan"), "is nan"), (float("inf"), "is inf"), (-1, "is -1")):
            self.files["replay.json"]["benchmarks"][0]["peak_reserved_bytes"] = value
            self.assertIn(f"peak_reserved_bytes: {text}", self.complaint())

    def test_a_curve_with_a_wrong_value_says_which(self):
        self.files["replay_memory.json"]["runs"][2]["series"]["reserved_bytes"][17] = "many"
        self.assertIn('series.reserved_bytes[17]: is the text "many"', self.complaint())

    def test_curves_of_different_lengths(self):
        self.files["replay_memory.json"]["runs"][0]["series"]["active_bytes"].pop()
        self.assertIn("expected lists of one length", self.complaint())

    def test_a_block_outside_its_segment(self):
        segment = self.files["replay_memory.json"]["runs"][0]["segments"][0]
        segment["blocks"][-1][1] += 512
        self.assertIn("expected a block inside its segment", self.complaint())

    def test_an_unknown_block_state(self):
        segment = self.files["replay_memory.json"]["runs"][0]["segments"][0]
        segment["blocks"][0][2] = "free"
        self.assertIn('is "free"; expected "allocated"', self.complaint())

    def test_a_benchmark_of_another_program(self):
        self.files["replay.json"]["benchmarks"][0]["name"] = "BM_StringCopy"
        self.assertIn('begins with "replay/"', self.complaint())

    def test_a_failed_benchmark(self):
        self.files["host_cost.json"]["benchmarks"][0].update(
            error_occurred=True, error_message="3 blocks leaked"
        )
        self.assertIn("3 blocks leaked", self.complaint())

    def test_no_benchmark_at_all(self):
        self.files["replay.json"]["benchmarks"] = []
        self.assertIn("holds no benchmark", self.complaint())

    def test_the_same_run_twice(self):
        runs = self.files["replay_memory.json"]["runs"]
        runs.append(runs[0])
        self.assertIn("come twice", self.complaint())

    def test_any_damage_is_read_or_refused_in_one_line(self):
        """Replaces or removes a value anywhere; anything but a result or a ResultError is a fault."""
        generator = random.Random(SEED)
        refused = 0
        for _ in range(150):
            name = generator.choice(list(self.files))
            content = copy.deepcopy(self.files[name])
            damage(generator, content)
            with tempfile.TemporaryDirectory() as folder:
                sample.write(folder, {name: content})
                try:
                    load.load(folder)
                except load.ResultError as error:
                    self.assertNotIn("\n", str(error), f"seed {SEED}")
                    refused += 1
        self.assertGreater(refused, 20, f"seed {SEED}")

    def test_a_file_cut_anywhere_is_refused(self):
        text = json.dumps(self.files["replay.json"])
        for end in random.Random(SEED).sample(range(len(text)), 40):
            self.files["replay.json"] = text[:end]
            self.complaint()


def damage(generator, value):
    """Walks down at random and breaks what it finds there."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = generator.choice(keys)
        inner = value[key]
        if isinstance(inner, (dict, list)) and inner and generator.random() < 0.8:
            value = inner
            continue
        if generator.random() < 0.3:
            del value[key]
        else:
            value[key] = generator.choice([None, True, -1, "", "text", [], {}, [1], float("nan")])
        return


if __name__ == "__main__":
    unittest.main()
