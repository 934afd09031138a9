"""The replay program from outside: ranking, result files, exit statuses, what bad input gets.

Arguments: the program, then the bundled traces, of which the smallest is taken.
"""

import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

from reports import load, ranking

TOOL = os.path.abspath(sys.argv[1])
TRACE = next(os.path.abspath(path) for path in sys.argv[2:] if "mlp__default" in path)
MIB = 1 << 20
SMALL_PIPE = 4096  # holds little, so that a program that writes much waits for its reader
ADDRESS = 0x7F0000000000
# One block of 8 MiB in one segment of 20 MiB: all that a snapshot needs.
BARE = {
    "segments": [
        {
            "device": 0, "address": ADDRESS, "total_size": 20 * MIB, "allocated_size": 8 * MIB,
            "active_size": 8 * MIB, "stream": 0, "segment_type": "large",
            "blocks": [
                {
                    "address": ADDRESS, "size": 8 * MIB, "requested_size": 8 * MIB,
                    "state": "active_allocated",
                },
                {
                    "address": ADDRESS + 8 * MIB, "size": 12 * MIB, "requested_size": 0,
                    "state": "inactive",
                },
            ],
        }
    ],
    "device_traces": [
        [
            {"action": action, "addr": ADDRESS, "size": size, "stream": 0, "frames": []}
            for action, size in (("segment_alloc", 20 * MIB), ("alloc", 8 * MIB))
        ]
    ],
}


def rename(path, renamed, name, other):
    """A .tmt under another name of the same length: its first section (docs/trace-format.md)."""
    with open(path, "rb") as file:
        content = file.read()
    kind, encoding, count, size = struct.unpack_from("<IIQQ", content, 128)
    stored = content[160 : 160 + size]
    text = (zlib.decompress(stored) if encoding else stored).replace(name, other)
    assert kind == 1 and len(text) == count and other in text
    head = struct.pack("<IIQQI", kind, 0, count, count, zlib.crc32(text))
    with open(renamed, "wb") as file:
        file.write(content[:128] + head + struct.pack("<I", zlib.crc32(head)) + text)
        file.write(content[160 + size :])


class Replay(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = self.temporary.name
        self.out = os.path.join(self.folder, "out")

    def run_tool(self, *arguments):
        environment = {k: v for k, v in os.environ.items() if k != "BUILD_WORKING_DIRECTORY"}
        return subprocess.run(
            [TOOL, "--rounds", "1", *arguments],  # no test looks at a time
            capture_output=True, text=True, cwd=self.folder, env=environment, check=False,
        )

    def load(self, name, folder=None):
        with open(os.path.join(folder or self.out, name), encoding="utf-8") as file:
            return json.load(file)

    def expect_one_line(self, result, status, *words):
        self.assertEqual(result.returncode, status, result.stderr)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("Try ")]
        self.assertEqual(len(lines), 1, result.stderr)
        for word in words:
            self.assertIn(word, lines[0])

    def test_the_drivers_pools_are_replayed_in_either_spelling(self):
        result = self.run_tool(
            "--out", self.out, "--config", "plain=", "--config", "ours=x_allocator:async",
            "--config", "theirs=backend:cudaMallocAsync,max_split_size_mb:64", TRACE,
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("the driver's pools", result.stdout)
        runs = {run["name"].rsplit("/", 1)[1]: run for run in self.load("replay.json")["benchmarks"]}
        memory = {run["config_name"]: run for run in self.load("replay_memory.json")["runs"]}
        for name in ("ours", "theirs"):
            # Nothing is rounded, so no more is handed out; the pool grew, and its bytes were told.
            self.assertLessEqual(
                runs[name]["peak_allocated_bytes"], runs["plain"]["peak_allocated_bytes"]
            )
            self.assertGreaterEqual(
                runs[name]["peak_reserved_bytes"], runs[name]["peak_allocated_bytes"]
            )
            self.assertGreater(runs[name]["device_mallocs"], 0)
            self.assertEqual(
                max(memory[name]["series"]["reserved_bytes"]), runs[name]["peak_reserved_bytes"]
            )
            self.assertEqual(memory[name]["segments"], [])
        self.assertEqual(runs["ours"]["peak_reserved_bytes"], runs["theirs"]["peak_reserved_bytes"])
        self.expect_one_line(
            self.run_tool("--config", "a=backend:cudaMallocAsync,max_split_size_mb:1", TRACE), 2,
            "--config a", "max_split_size_mb",
        )

    def test_default_set_is_ranked_and_written(self):
        result = self.run_tool("--out", self.out, TRACE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("self-check 100 %", result.stdout)
        self.assertIn("peak reserved", result.stdout)
        runs = {run["name"]: run for run in self.load("replay.json")["benchmarks"]}
        names = ("default", "direct", "gc08", "large64", "round4", "split128")
        self.assertEqual(sorted(runs), ["replay/mlp__default/" + name for name in names])
        default = runs["replay/mlp__default/default"]
        # What PyTorch's own memory_stats said of this program.
        self.assertEqual(default["peak_reserved_bytes"], 250 * MIB)
        self.assertEqual(default["peak_allocated_bytes"], 179325952)
        self.assertEqual(default["device_mallocs"], 9)
        self.assertEqual(default["events"], 278)
        self.assertEqual(default["self_check"], 1)
        self.assertGreater(default["ns_per_event"], 0)
        # Garbage collection needs a limit: 1.1 times the default's peak.
        collected = runs["replay/mlp__default/gc08"]
        share = collected["memory_fraction"] * collected["capacity_bytes"]
        self.assertAlmostEqual(share / MIB, 275, delta=0.01)
        self.assertAlmostEqual(collected["limit_bytes"] / MIB, 275, delta=0.01)
        self.assertEqual(default["limit_bytes"], 80 << 30)
        self.assertNotIn("self_check", collected)

    def test_memory_file_has_the_peaks_and_the_layout(self):
        self.assertEqual(self.run_tool("--out", self.out, TRACE).returncode, 0)
        memory = self.load("replay_memory.json")
        self.assertEqual(memory["schema"], "tidemark-memory-1")
        self.assertEqual(memory["context"]["tidemark_schema"], "1")
        run = next(run for run in memory["runs"] if run["recorded"])
        self.assertEqual(run["config_name"], "default")
        self.assertEqual(max(run["series"]["reserved_bytes"]), 250 * MIB)
        self.assertEqual(len(run["series"]["event"]), len(run["series"]["active_bytes"]))
        self.assertEqual(run["series"]["event"][-1], 278)
        self.assertEqual(sum(segment["size"] for segment in run["segments"]), 250 * MIB)
        for segment in run["segments"]:
            end = 0
            for offset, size, _state in segment["blocks"]:
                self.assertEqual(offset, end)
                end += size
            self.assertEqual(end, segment["size"])
        self.assertTrue(run["self_check"]["exact"])
        self.assertIsNone(run["out_of_memory"])

    def test_given_configurations_join_the_recorded_one(self):
        result = self.run_tool("--out", self.out, "--config", "a=max_split_size_mb:32", TRACE)
        self.assertEqual(result.returncode, 0, result.stderr)
        names = [run["name"] for run in self.load("replay.json")["benchmarks"]]
        self.assertEqual(sorted(names), ["replay/mlp__default/a", "replay/mlp__default/recorded"])

    def test_too_small_a_device_is_an_outcome(self):
        result = self.run_tool("--out", self.out, "--capacity", "100MiB", "--config", "d=", TRACE)
        self.assertEqual(result.returncode, 0, result.stderr)
        runs = self.load("replay_memory.json")["runs"]
        run = next(run for run in runs if run["config_name"] == "d")
        self.assertIn("CUDA out of memory", run["out_of_memory"]["message"])
        self.assertLessEqual(max(run["series"]["reserved_bytes"]), 100 * MIB)
        # It is that of the recording as well, which is not run twice, and no longer as recorded.
        self.assertEqual([run["config_name"] for run in runs], ["d"])
        self.assertFalse(run["recorded"])

    def test_text_is_of_terminal_width_and_aligned(self):
        result = self.run_tool(TRACE, TRACE)
        lines = result.stdout.splitlines()
        self.assertLessEqual(max(len(line) for line in lines), 100)
        head = next(line for line in lines if "peak reserved" in line)
        row = next(line for line in lines if "1. " in line)
        self.assertEqual(len(head), len(row))
        self.assertEqual(lines.count("Settings compared:"), 1)
        self.assertIn("gc08: process limited to 275 MiB", result.stdout)

    def test_ranks_as_the_page_does(self):
        # From one on which every setting ends early to one that is no limit.
        for capacity in (100, 190, 230, 300):
            out = os.path.join(self.folder, str(capacity))
            options = ["--out", out, "--capacity", f"{capacity}MiB", "--format", "json"]
            result = self.run_tool(*options, TRACE)
            self.assertEqual(result.returncode, 0, result.stderr)
            (trace,) = json.loads(result.stdout)["traces"]
            names = [entry["config_name"] for entry in trace["ranking"]]
            results = load.load(out)
            self.assertEqual(names, [run.config_name for run in ranking.rank(results.runs)])

    def test_a_limit_on_a_device_of_unknown_size_is_told_in_bytes(self):
        # A trace without its capacity, as a snapshot alone would be.
        snapshot = os.path.join(self.folder, "bare.pickle")
        with open(snapshot, "wb") as file:
            pickle.dump(BARE, file)
        self.assertEqual(self.run_tool("--out", self.out, snapshot).returncode, 0)
        runs = {run["name"].split("/")[-1]: run for run in self.load("replay.json")["benchmarks"]}
        self.assertEqual(runs["default"]["capacity_bytes"], 0)
        self.assertNotIn("limit_bytes", runs["default"])
        self.assertEqual(runs["gc08"]["limit_bytes"], 22 * MIB)

    def test_expandable_segments_of_many_streams_fit_a_device_of_unknown_size(self):
        # Each stream reserves 9/8 of the device twice, for small blocks and for large ones.
        streams, wants = range(16), ((2 * MIB, 512), (20 * MIB, 8 * MIB))
        trace, address = [], ADDRESS
        for stream in streams:
            for total, size in wants:
                for action, bytes_ in (("segment_alloc", total), ("alloc", size),
                                       ("free_requested", size), ("free_completed", size),
                                       ("segment_free", total)):
                    trace.append({"action": action, "addr": address, "size": bytes_,
                                  "stream": stream, "frames": []})
                address += total
        snapshot = os.path.join(self.folder, "streams.pickle")
        with open(snapshot, "wb") as file:
            pickle.dump({"segments": [], "device_traces": [trace]}, file)
        result = self.run_tool("--out", self.out, "--config", "exp=expandable_segments:True",
                               snapshot)
        self.assertEqual(result.returncode, 0, result.stderr)
        runs = {run["name"].split("/")[-1]: run for run in self.load("replay.json")["benchmarks"]}
        self.assertEqual(runs["exp"]["ooms"], 0)

    def test_json_ranks_best_first(self):
        result = self.run_tool("--format", "json", TRACE)
        self.assertEqual(result.returncode, 0, result.stderr)
        (trace,) = json.loads(result.stdout)["traces"]
        cached = [entry for entry in trace["ranking"] if entry["config_name"] != "direct"]
        peaks = [entry["peak_reserved_bytes"] for entry in cached]
        self.assertEqual(peaks, sorted(peaks))
        self.assertEqual(trace["ranking"][-1]["config_name"], "direct")

    def test_results_of_before_are_kept(self):
        self.assertEqual(self.run_tool("--out", self.out, TRACE).returncode, 0)
        before = self.load("replay.json")
        result = self.run_tool("--out", self.out, TRACE)
        self.assertEqual(result.returncode, 0)
        self.assertIn(self.out + "-2", result.stderr)
        self.assertEqual(self.load("replay.json"), before)
        self.assertTrue(self.load("replay.json", self.out + "-2")["benchmarks"])

    def test_runs_at_once_into_one_folder_keep_theirs(self):
        command = [TOOL, "--rounds", "1", "--config", "d=", "--out", self.out, TRACE]
        runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
        self.assertEqual([run.wait(timeout=60) for run in runs], [0] * 4)
        for folder in ("out", "out-2", "out-3", "out-4"):
            found = sorted(os.listdir(os.path.join(self.folder, folder)))
            self.assertEqual(found, ["replay.json", "replay_memory.json"])

    def mark(self, process):
        os.makedirs(self.out)
        with open(os.path.join(self.out, ".running"), "w", encoding="ascii") as file:
            file.write(f"{process}\n")

    def test_a_folder_that_another_program_uses_is_left_alone(self):
        self.mark(1 << 22)  # beyond the numbers that processes have
        self.assertEqual(self.run_tool("--out", self.out, "--config", "d=", TRACE).returncode, 0)
        self.assertEqual(os.listdir(self.out), [".running"])
        self.assertTrue(self.load("replay.json", self.out + "-2")["benchmarks"])

    def test_a_folder_of_the_program_that_runs_it_is_used_and_stays_taken(self):
        self.mark(os.getpid())
        self.assertEqual(self.run_tool("--out", self.out, "--config", "d=", TRACE).returncode, 0)
        found = sorted(os.listdir(self.out))
        self.assertEqual(found, [".running", "replay.json", "replay_memory.json"])

    def test_a_folder_that_got_nothing_is_taken_away(self):
        bad = os.path.join(self.folder, "none.tmt")
        self.expect_one_line(self.run_tool("--out", self.out, bad), 2, "none.tmt")
        self.assertFalse(os.path.exists(self.out))

    def test_a_reader_that_has_seen_enough_costs_no_results(self):
        command = [TOOL, "--rounds", "1", "--config", "d=", "--out", self.out] + [TRACE] * 200
        run = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pipesize=SMALL_PIPE
        )
        run.stdout.readline()
        run.stdout.close()
        errors = run.stderr.read()
        run.stderr.close()
        self.assertEqual((run.wait(timeout=60), errors), (128 + signal.SIGPIPE, ""))
        self.assertLess(len(self.load("replay.json")["benchmarks"]), 400)

    def test_rankings_that_cannot_be_written_are_one_line(self):
        command = [TOOL, "--rounds", "1", "--config", "d=", "--out", self.out, TRACE]
        for form in ("text", "json"):
            with open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run(
                    command + ["--format", form],
                    stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                )
            lines = [line for line in result.stderr.splitlines() if "in use" not in line]
            expected = "replay: cannot write standard output: No space left on device"
            self.assertEqual((result.returncode, lines), (2, [expected]))
        self.assertTrue(self.load("replay.json")["benchmarks"])

    def test_a_configuration_that_json_cannot_hold_is_written_all_the_same(self):
        config = "a=max_split_size_mb:128\v"
        result = self.run_tool("--out", self.out, "--config", config, TRACE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("\v", result.stdout)
        runs = {run["name"].split("/")[-1]: run for run in self.load("replay.json")["benchmarks"]}
        self.assertEqual(runs["a"]["label"], "max_split_size_mb:128?")

    def test_a_slash_in_a_name_divides_no_result(self):
        named = os.path.join(self.folder, "named.tmt")
        rename(TRACE, named, b"mlp__default", b"mlp/d/efault")
        result = self.run_tool("--out", self.out, "--config", "d=", named)
        self.assertEqual(result.returncode, 0, result.stderr)
        names = {run["name"] for run in self.load("replay.json")["benchmarks"]}
        self.assertIn("replay/mlp-d-efault/d", names)

    def test_a_fault_plan_makes_device_calls_fail(self):
        plan = os.path.join(self.folder, "plan")
        with open(plan, "w", encoding="ascii") as file:
            file.write("cudaMalloc at 3 error cudaErrorMemoryAllocation for-ever\n")
        wrong = self.run_tool("--faults", plan, TRACE)
        self.assertEqual(wrong.returncode, 2)
        self.assertRegex(wrong.stderr, r"^replay: --faults: .*plan:1: .*\n$")
        with open(plan, "w", encoding="ascii") as file:
            file.write("cudaMalloc every 1 error cudaErrorMemoryAllocation\n")
        out = os.path.join(self.folder, "faults")
        self.assertEqual(self.run_tool("--faults", plan, "--out", out, TRACE).returncode, 0)
        with open(os.path.join(out, "replay.json"), encoding="utf-8") as file:
            results = json.load(file)["benchmarks"]
        for result in results:
            self.assertEqual(result["out_of_memory"], 1, result["name"])
            self.assertEqual(result["device_mallocs"], 0, result["name"])

    def test_the_cost_of_device_calls_is_modelled(self):
        costs = {}
        for device in ("h200", "a100-80gb"):
            out = os.path.join(self.folder, device)
            self.assertEqual(self.run_tool("--out", out, "--device", device, TRACE).returncode, 0)
            document = self.load("replay.json", out)
            self.assertIn(device[:4], document["context"]["device"].lower().replace(" ", ""))
            for run in document["benchmarks"]:
                name = run["name"].split("/")[-1]
                keys = ("modelled_device_low_s", "modelled_device_s", "modelled_device_high_s")
                low, typical, high = (run[key] for key in keys)
                self.assertTrue(0 < low < typical < high, name)
                costs[device, name] = typical
            # Without a cache every request reaches the device.
            self.assertGreater(costs[device, "direct"], 5 * costs[device, "default"])
        result = self.run_tool("--device", "nosuchdevice", TRACE)
        self.expect_one_line(result, 2, "--device", "nosuchdevice")

    def test_a_device_limits_a_recording_that_does_not_say(self):
        snapshot = os.path.join(self.folder, "bare.pickle")
        with open(snapshot, "wb") as file:
            pickle.dump(BARE, file)
        options = ["--out", self.out, "--device", "a100-80gb"]
        self.assertEqual(self.run_tool(*options, snapshot).returncode, 0)
        runs = self.load("replay.json")["benchmarks"]
        (limit,) = {run["limit_bytes"] for run in runs if not run["name"].endswith("gc08")}
        self.assertTrue(75 << 30 < limit <= 80 << 30, limit)

    def test_unreadable_file_is_left_out_and_the_others_run(self):
        bad = os.path.join(self.folder, "bad.pickle")
        with open(bad, "w", encoding="utf-8") as file:
            file.write("no snapshot")
        result = self.run_tool("--out", self.out, bad, TRACE)
        self.expect_one_line(result, 2, "bad.pickle")
        self.assertTrue(self.load("replay.json")["benchmarks"])

    def test_missing_file(self):
        self.expect_one_line(self.run_tool(os.path.join(self.folder, "none.tmt")), 2, "none.tmt")

    def test_bad_usage_is_one_line(self):
        misspelt = self.run_tool("--config", "a=max_splt_size_mb:1", TRACE)
        self.expect_one_line(misspelt, 2, "max_splt_size_mb")
        # A place is that in the user's text: PyTorch counts its words from 0.
        untrue = self.run_tool("--config", "a=expandable_segments:1", TRACE)
        self.expect_one_line(untrue, 2, "at index 2 ")
        for key in ("x_allocator", "x_foo:1"):
            unknown = self.run_tool("--config", "a=" + key, TRACE)
            self.expect_one_line(unknown, 2, key.split(":")[0], "x_allocator")
        self.expect_one_line(self.run_tool("--config", "a=", "--config", "a=", TRACE), 2, "twice")
        self.expect_one_line(self.run_tool("--capacity", "0", TRACE), 2, "capacity")
        self.expect_one_line(self.run_tool("--capacity", "1MiB", TRACE), 2, "2 MiB")
        self.expect_one_line(self.run_tool("--capacity", "200000TiB", TRACE), 2, "capacity")
        self.expect_one_line(self.run_tool("--fraction", "1.5", TRACE), 2, "1.5")
        self.expect_one_line(self.run_tool("--fraction", "0", TRACE), 2, "fraction")
        self.expect_one_line(self.run_tool("--what", TRACE), 2, "--what")
        self.expect_one_line(self.run_tool("--rounds", "9999999", TRACE), 2, "--rounds")
        self.assertEqual(self.run_tool().returncode, 2)

    def test_unwritable_folder_is_told_before_any_work(self):
        file = os.path.join(self.folder, "file")
        with open(file, "w", encoding="utf-8"):
            pass
        result = self.run_tool("--out", file + "/below", TRACE)
        self.expect_one_line(result, 2, "--out")
        self.assertEqual(result.stdout, "")

    def test_interrupt_keeps_what_is_complete(self):
        # The first ranking tells when to stop it.
        process = subprocess.Popen(
            [TOOL, "--rounds", "3", "--out", self.out] + [TRACE] * 200,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pipesize=SMALL_PIPE,
        )
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        names = {run["name"] for run in self.load("replay.json")["benchmarks"]}
        self.assertIn("replay/mlp__default/default", names)
        self.assertLess(len(names), 1200)
        self.assertTrue(self.load("replay_memory.json")["runs"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
