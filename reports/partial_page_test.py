"""Pages of folders that lack files, hold odd names, or cannot be read at all."""

import contextlib
import glob
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from reports import load, page, ranking, sample
from reports.page_test import build

SEED = 29


class PartialPages(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def build(self, files, **options):
        paths, text, document = build(self.folder, files, **options)
        self.assertEqual(document.faults, [], f"seed {SEED}")
        return paths, text, document

    def only(self, *names, **options):
        files = sample.make(SEED, **options)
        return self.build({name: files[name] for name in names})

    def test_host_cost_alone_says_that_no_setting_can_be_named(self):
        paths, text, document = self.only("host_cost.json")
        self.assertIn("What does an allocation cost on the host?", text)
        self.assertIn("no setting can be named", text)
        self.assertEqual(list(document.tables), ["Host cost"])
        self.assertEqual(len(paths), 1 + 2 * 2)

    def test_replay_speed_alone_has_its_table(self):
        _, text, document = self.only("replay_speed.json")
        self.assertIn("million events/s", text)
        self.assertEqual(list(document.tables), ["Replay speed of made_1000000"])

    def test_workloads_alone_have_their_tables_and_picture(self):
        paths, text, document = self.only("workloads.json")
        self.assertIn("What do allocator settings do to a program?", text)
        self.assertEqual(list(document.tables), ["training under settings", "threads under settings"])
        self.assertEqual([os.path.basename(path) for path in paths[1:]], ["workloads.svg", "workloads.png"])

    def test_workloads_on_a_gpu_are_measured_and_know_no_waits(self):
        files = sample.make(SEED)["workloads.json"]
        for benchmark in files["benchmarks"][:-1]:
            benchmark["modelled"] = 0.0
            del benchmark["wait_ns"], benchmark["dry_ns"]
        _, text, document = self.build({"workloads.json": files})
        head = [cell for cell, _ in document.tables["training under settings"][0]]
        self.assertIn("step, measured", head)
        self.assertNotIn("device dry", head)
        self.assertNotIn("odelled", text.split('id="context"')[0].split("<body>")[1])

    def test_replay_alone_has_a_ranking_and_says_what_is_absent(self):
        paths, text, document = self.only("replay.json", traces=["alpha"])
        self.assertIn("replay_memory.json is absent", text)
        self.assertIn("Ranking of configurations", document.tables)
        self.assertEqual(len(paths), 1)

    def test_memory_alone_has_curves_and_leaves_unknown_cells_empty(self):
        _, text, document = self.only("replay_memory.json", traces=["alpha"])
        self.assertIn("replay.json is absent", text)
        row = document.tables["Ranking of configurations"][1]
        self.assertEqual([text for text, _ in row[-3:]], ["–", "–", "–"])
        self.assertIn("<svg ", text)

    def test_many_traces_have_one_overview(self):
        paths, text, document = self.only("replay.json", traces=["alpha", "beta", "gamma"])
        rows = document.tables["Peak reserved memory relative to the default"]
        self.assertEqual([row[0][0] for row in rows], ["trace", "alpha", "beta", "gamma"])
        self.assertIn(os.path.join(self.folder, "figures/overview.png"), paths)
        results = load.load(self.folder)
        for row, trace in zip(rows[1:], results.traces):
            choice = ranking.judge(results.runs_of(trace)).choice
            self.assertTrue(row[1][0].startswith(choice.config_name), f"seed {SEED}")

    def test_odd_names_are_text_on_the_page_and_distinct_files_beside_it(self):
        traces = ['a/<b>&"c"', "a-<b>-'c", "a-b-c", "ü" * 200]
        configs = {"default": "", "<i>`x`</i>": "max_split_size_mb:128", "y" * 90: "z" * 300}
        names = ("replay.json", "replay_memory.json")
        paths, text, document = self.only(*names, traces=traces, configs=configs)
        self.assertNotIn("<i>`", text)
        self.assertNotIn("<b>&", text)
        self.assertEqual(len(paths), len(set(paths)))
        self.assertEqual(len(document.ids), len(set(document.ids)))
        for path in paths:
            self.assertTrue(os.path.getsize(path) > 0)

    def test_many_configurations_are_all_ranked_and_some_drawn(self):
        configs = {f"config{index}": f"max_split_size_mb:{index + 21}" for index in range(20)}
        configs["default"] = ""
        _, text, document = self.only(
            "replay.json", "replay_memory.json", traces=["alpha"], configs=configs
        )
        self.assertEqual(len(document.tables["Ranking of configurations"]), 1 + 21)
        self.assertIn("13 of 21 configurations are not drawn", text)

    def test_zero_memory_is_drawn_and_not_divided_by(self):
        files = sample.make(SEED, traces=["alpha"])
        del files["host_cost.json"], files["host_cost_two_threads.json"]
        for run in files["replay_memory.json"]["runs"]:
            points = len(run["series"]["event"])
            for key in ("reserved_bytes", "allocated_bytes", "active_bytes"):
                run["series"][key] = [0] * points
            run["segments"] = []
            run["streams"] = []
        for benchmark in files["replay.json"]["benchmarks"]:
            benchmark.update(peak_reserved_bytes=0, peak_allocated_bytes=0, fragmentation=0)
        self.build(files)

    def test_a_page_is_written_again_over_the_old_one(self):
        first = self.only("replay.json")[1]
        self.assertEqual(self.only("replay.json")[1], first)


def has_picture(folder):
    return glob.glob(os.path.join(glob.escape(folder), "*.svg")) != []


class Program(unittest.TestCase):
    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = page.main(list(arguments))
        return status, out.getvalue(), err.getvalue()

    def test_it_prints_the_page(self):
        with tempfile.TemporaryDirectory() as folder:
            sample.write(folder, {"replay.json": sample.make(SEED, ["alpha"])["replay.json"]})
            status, out, err = self.run_main(folder, "--quick")
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(out, os.path.join(folder, "index.html") + "\n")

    def test_unreadable_results_are_one_line_and_status_2(self):
        with tempfile.TemporaryDirectory() as folder:
            status, out, err = self.run_main(folder)
            self.assertEqual((status, out), (2, ""))
            self.assertRegex(err, r"^page: .*holds no results; expected .*\n$")
            sample.write(folder, {"replay.json": "{}"})
            status, _, err = self.run_main(folder)
            self.assertEqual((status, err.count("\n")), (2, 1))
            self.assertFalse(os.path.exists(os.path.join(folder, "index.html")))

    def test_a_write_that_fails_names_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.svg")
            os.symlink("/dev/full", f"{path}.{os.getpid()}.part")
            with self.assertRaises(OSError) as caught:
                page.write_file(path, b"x")
            self.assertEqual(caught.exception.filename, path)
            self.assertEqual(os.listdir(folder), [])

    def test_wrong_usage_is_one_line_and_a_pointer_to_help(self):
        with self.assertRaises(SystemExit) as end, contextlib.redirect_stderr(io.StringIO()) as err:
            page.main(["--what", "x"])
        self.assertEqual(end.exception.code, 2)
        expected = "page: unrecognized arguments: --what\nTry 'page --help'\n"
        self.assertEqual(err.getvalue(), expected)

    def interrupt(self, folder, number, begun):
        """Runs the program on FOLDER and sends it NUMBER once BEGUN(); returns what it drew."""
        figures = os.path.join(folder, page.FIGURE_FOLDER)
        child = subprocess.Popen(
            [sys.executable, os.path.abspath(page.__file__), folder],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stderr=subprocess.PIPE,
            text=True,
        )
        while not begun(figures):
            self.assertIsNone(child.poll())
            time.sleep(0.001)
        child.send_signal(number)
        _, errors = child.communicate(timeout=60)
        self.assertEqual(errors, "page: interrupted; no page was written\n")
        self.assertEqual(child.returncode, 128 + number)
        left = []
        if os.path.exists(figures):
            left = os.listdir(figures)
            self.assertTrue(left, "an empty folder was left")
            self.assertEqual([name for name in left if "part" in name], [])
            shutil.rmtree(figures)
        self.assertEqual(set(os.listdir(folder)), set(sample.make(SEED)))
        return left

    def test_an_interrupt_ends_it_at_once_with_one_line(self):
        with tempfile.TemporaryDirectory(prefix="[odd]") as folder:
            sample.write(folder, sample.make(SEED))
            for number in (signal.SIGINT, signal.SIGTERM):
                self.interrupt(folder, number, os.path.exists)  # nothing need be complete yet
                self.assertTrue(self.interrupt(folder, number, has_picture))

    def test_a_relative_path_is_meant_where_the_user_stands(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["BUILD_WORKING_DIRECTORY"] = folder
            self.addCleanup(os.environ.pop, "BUILD_WORKING_DIRECTORY")
            sample.write(
                os.path.join(folder, "out"),
                {"replay.json": sample.make(SEED, ["alpha"])["replay.json"]},
            )
            self.assertEqual(self.run_main("out")[0], 0)
            self.assertTrue(os.path.exists(os.path.join(folder, "out", "index.html")))


if __name__ == "__main__":
    unittest.main()
