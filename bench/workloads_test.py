"""The workload benchmark from outside: its tables, its result file beside what //workload:run counts
of the same programs, exit statuses, what bad input gets.

Arguments: the program, and that of //workload:run.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL, RUN = (os.path.abspath(path) for path in sys.argv[1:3])
CONFIGS = {
    "default": "",
    "split128": "max_split_size_mb:128",
    "round4": "roundup_power2_divisions:4",
    "large64": "large_segment_size_mb:64",
    "gc08": "garbage_collection_threshold:0.8",
    "direct": "x_allocator:direct",
    "async": "x_allocator:async",
}
MEASURED = ("host_ns", "allocator_host_ns", "allocator_share", "watch_ns")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def environment():
    return {k: v for k, v in os.environ.items() if k != "BUILD_WORKING_DIRECTORY"}


def start(folder, *arguments):
    return subprocess.Popen(
        [TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env=environment(),
    )


def run_tool(folder, *arguments):
    child = start(folder, *arguments)
    output, errors = child.communicate(timeout=300)
    return child.returncode, output, errors


def benchmarks(text):
    results = json.loads(text)
    assert results["context"]["tidemark_schema"] == "1"
    runs = {}
    for run in results["benchmarks"]:
        _, program, config = run["name"].split("/")
        runs.setdefault(program, {})[config] = run
    return results["context"], runs


class Workloads(unittest.TestCase):
    """One quick run of everything, looked at from all sides."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        status, cls.output, errors = run_tool(
            cls.temporary.name, "--quick", "--seed", "7", "--out", "out"
        )
        assert status == 0, errors
        with open(os.path.join(cls.temporary.name, "out/workloads.json"), encoding="utf-8") as file:
            cls.text = file.read()
        cls.context, cls.runs = benchmarks(cls.text)

    def every(self):
        return [
            (program, config, run)
            for program, configs in self.runs.items()
            for config, run in configs.items()
        ]

    def test_every_program_ran_under_every_setting(self):
        listing = subprocess.run([RUN, "--list"], capture_output=True, text=True, check=True).stdout
        names = {line.split()[0] for line in listing.splitlines() if not line.startswith(" ")}
        self.assertEqual(set(self.runs), names)
        self.assertEqual(self.context["seed"], "7")
        for program in ("patterns", "offload", "sharded", "transformer"):
            self.assertEqual(set(self.runs[program]), set(CONFIGS))
        for _, config, run in self.every():
            self.assertEqual(run.get("label", ""), CONFIGS[config])
            self.assertEqual((run["modelled"], run["out_of_memory"], run["result_check"]), (1, 0, 1))

    def test_latencies_are_in_order_and_make_the_throughput(self):
        for _, _, run in self.every():
            order = [run[key] for key in ("p50_ns", "p90_ns", "p99_ns", "max_ns")]
            self.assertEqual(order, sorted(order))
            self.assertGreater(order[0], 0)
            self.assertLessEqual(run["real_time"], run["max_ns"] * (1 + 1e-9))
            self.assertAlmostEqual(run["steps_per_second"] * run["real_time"] / 1e9, 1, places=6)
            # The clock of the host and the events of the device are two witnesses.
            self.assertLess(run["steps_per_second_low"], run["steps_per_second"] * 1.05)
            self.assertGreater(run["steps_per_second_high"], run["steps_per_second"] * 0.95)

    def test_two_steps_are_one_latency(self):
        status, output, errors = run_tool(
            self.temporary.name, "transformer", "--quick", "--steps", "2", "--seed", "7",
            "--config", "default=", "--format", "json",
        )
        self.assertEqual((status, errors), (0, ""))
        run = benchmarks(output)[1]["transformer"]["default"]
        for key in ("p50_ns", "p90_ns", "p99_ns", "max_ns"):
            self.assertEqual(run[key], run["real_time"])
        longer = self.runs["transformer"]["default"]
        self.assertEqual((run["steps"], run["first_ns"]), (2, longer["first_ns"]))
        self.assertGreaterEqual(run["max_ns"], longer["p50_ns"])  # what grows does so at first
        self.assertLessEqual(run["max_ns"], longer["max_ns"])

    def test_memory_adds_up(self):
        for _, config, run in self.every():
            self.assertGreaterEqual(run["peak_reserved_bytes"], run["peak_active_bytes"])
            self.assertGreaterEqual(run["peak_active_bytes"], run["peak_allocated_bytes"])
            # As in PyTorch: bytes are requested until the free of their block is complete.
            self.assertGreaterEqual(run["peak_active_bytes"], run["peak_requested_bytes"])
            if config == "direct":
                self.assertEqual(run["peak_reserved_bytes"], run["peak_allocated_bytes"])
                self.assertEqual(run["device_mallocs"], run["requests"])
                self.assertEqual(run["device_frees"], run["requests"])

    def test_stalls_are_parts_of_steps(self):
        for program, config, run in self.every():
            steps = run["steps"] - 1
            self.assertLessEqual(run["wait_ns"], run["stall_ns"])
            self.assertLessEqual(run["dry_ns"], run["stall_ns"])
            self.assertLessEqual(
                run["stall_longest_ns"], run["stall_ns"] * steps + run["first_stall_ns"]
            )
            self.assertLessEqual(run["stall_ns"], run["real_time"] * 1.05)
            if config == "direct":  # who asks the device each time waits each time
                cached = self.runs[program]["default"]
                self.assertGreater(run["stall_ns"], 5 * cached["stall_ns"])
                self.assertGreater(run["real_time"], cached["real_time"])

    def test_the_allocator_has_a_part_of_the_host_time(self):
        for _, _, run in self.every():
            self.assertGreater(run["host_ns"], 0)
            self.assertGreaterEqual(run["allocator_share"], 0)
        shares = [run["allocator_share"] for _, _, run in self.every()]
        self.assertGreater(max(shares), 0.01)
        self.assertLess(sorted(shares)[len(shares) // 2], 1)

    def test_counts_are_those_of_the_programs_alone(self):
        arguments = [f"--config={name}={text}" for name, text in CONFIGS.items() if name != "gc08"]
        sizes_of = {"moe": "small", "graphs": "small"}
        for program in set(self.runs) - {"patterns"}:  # one thread: one order of things
            size = sizes_of.get(program, "medium")
            steps = str(int(self.runs[program]["default"]["steps"]))
            output = subprocess.run(
                [RUN, program, f"--size={size}", "--steps", steps, "--seed=7", "--numerics-off",
                 "--schedule=timed", *arguments],
                capture_output=True, text=True, check=True, env=environment(),
            ).stdout
            for line in output.splitlines()[2:]:
                _, config, _, requests, *sizes, calls = line.split()
                run = self.runs[program][config]
                with self.subTest(program=program, config=config):
                    self.assertEqual(int(requests), run["requests"])
                    self.assertEqual(int(calls), run["device_mallocs"] + run["device_frees"])
                    for kind, (number, unit) in zip(
                        ("allocated", "reserved"), (sizes[:2], sizes[2:4])
                    ):
                        told = float(number) * UNITS[unit]
                        self.assertAlmostEqual(run[f"peak_{kind}_bytes"] / told, 1, places=2)

    def test_the_tables_say_what_the_file_says(self):
        rows = re.findall(r"^  (\S+) +([\d.]+) +([\d.]+) +([\d.]+) ", self.output, re.M)
        runs = [(config, run) for _, config, run in self.every()]
        self.assertEqual(len(rows), len(runs))
        for (name, p50, p99, rate), (config, run) in zip(rows, runs):
            self.assertEqual(name, config)
            self.assertEqual(p50, f"{run['p50_ns'] / 1e6:.3f}")
            self.assertEqual(p99, f"{run['p99_ns'] / 1e6:.3f}")
            self.assertEqual(rate, f"{run['steps_per_second']:.1f}")
        self.assertIn("times of steps and stalls are modelled", self.output)
        self.assertTrue(self.output.endswith("Results: out/workloads.json\n"))

    def test_modelled_figures_are_the_same_again(self):
        status, output, errors = run_tool(
            self.temporary.name, "--quick", "--seed", "7", "--format", "json", "patterns", "offload",
            "--out", "again",
        )
        self.assertEqual((status, errors), (0, ""))
        with open(os.path.join(self.temporary.name, "again/workloads.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), output)
        again = benchmarks(output)[1]
        self.assertEqual(list(again), ["patterns", "offload"])
        for program, configs in again.items():
            for config, run in configs.items():
                before = self.runs[program][config]
                for key in run:
                    if key not in MEASURED and not key.endswith("_index"):
                        self.assertEqual(run[key], before[key], (program, config, key))


class Usage(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.out = os.path.join(self.folder, "out")

    def expect_refusal(self, arguments, *words):
        status, output, errors = run_tool(self.folder, *arguments)
        self.assertEqual((status, output), (2, ""), errors)
        lines = [line for line in errors.splitlines() if not line.startswith("Try ")]
        self.assertEqual(len(lines), 1, errors)
        for word in ("workloads: ", *words):
            self.assertIn(word, lines[0])
        self.assertFalse(os.path.isdir(self.out))

    def test_bad_input_gets_a_line(self):
        self.expect_refusal(["nothing", "--out", self.out], "nothing", "transformer")
        self.expect_refusal(["offload", "offload"], "twice")
        self.expect_refusal(["--size", "huge"], "huge", "true")
        self.expect_refusal(["--steps", "1"], "--steps")
        self.expect_refusal(["--config", "a=max_split_size_mb:1"], "--config a")
        self.expect_refusal(["--config", "a=", "--config", "a="], "twice")
        self.expect_refusal(["--config", "a/b="], "a/b")
        self.expect_refusal(["--device", "nothing"], "--device")
        self.expect_refusal(["--capacity", "x"], "x")
        self.expect_refusal(["--format", "xml"], "xml")
        with open(self.out, "w", encoding="utf-8"):
            self.expect_refusal(["--out", self.out], self.out)

    def test_a_program_without_enough_memory_is_a_result(self):
        status, output, errors = run_tool(
            self.folder, "transformer", "--quick", "--capacity", "24MiB", "--out", "out",
            "--config", "default=", "--config", "direct=x_allocator:direct",
        )
        self.assertEqual((status, errors), (0, ""))
        self.assertRegex(output, r"\n  default +out of memory\n")
        with open(os.path.join(self.out, "workloads.json"), encoding="utf-8") as file:
            run = benchmarks(file.read())[1]["transformer"]["default"]
        self.assertEqual(run["out_of_memory"], 1)
        self.assertNotIn("p50_ns", run)

    def test_an_interrupt_leaves_no_folder(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            child = start(self.folder, "--out", self.out)
            while not os.path.exists(os.path.join(self.out, ".running")) and child.poll() is None:
                time.sleep(0.001)
            child.send_signal(number)
            _, errors = child.communicate(timeout=60)
            self.assertEqual(child.returncode, status, errors)
            self.assertEqual(errors.splitlines()[-1], "workloads: interrupted")
            self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
