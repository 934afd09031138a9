"""Result folder, exit statuses, interrupts and the page, with stand-ins for the programs."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from bench import runner
from reports import sample

# Runs bench:all or bench:replay as a program would be run, with the tools of the folder in argv[2].
DRIVER = """
import importlib, sys
from bench import runner
program = importlib.import_module("bench." + sys.argv[1])
tools = runner.Tools(sys.argv[2])
sys.exit(runner.main(sys.argv[1], lambda run, argv: program.job(run, argv, tools), sys.argv[3:]))
"""

# Stand-ins, for the shell, which starts quickest. Those that measure keep their arguments, one a
# line, and copy a made result into the folder when they are complete.
WRITE = """
printf '%s\\n' "$@" >ROOT/NAME.arguments
while [ "$1" != --out ]; do shift; done
cp ROOT/made/NAME "$2"
"""
PAGE = """
folder=$1; shift
printf '%s' "$*" >"$folder/index.html"
"""
MAKE = """
while [ $# -gt 1 ]; do shift; done
: >"$1"
"""
FAIL = "echo 'host_cost: 3 blocks leaked' >&2; exit 1"
# Ends cleanly on the first signal, at once on the second, as base/progress.h does.
WAIT = """#!/usr/bin/python3
import os, signal, sys, time
count = 0
def caught(number, frame):
    global count
    count += 1
    if count > 1: os._exit(99)
signal.signal(signal.SIGINT, caught)
signal.signal(signal.SIGTERM, caught)
open(os.environ["STARTED"], "w").close()
while count == 0: time.sleep(0.01)
time.sleep(0.2)
sys.exit(130)
"""

MEASURED = [
    "allocator.json", "capture.json", "host_cost.json", "replay.json", "replay_speed.json", "simulator.json",
    "tensor.json", "workloads.json",
]


class Programs(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.root = self.temporary.name
        self.out = os.path.join(self.root, "out")
        sample.write(os.path.join(self.root, "made"), sample.make(1))
        self.install("bench/replay_tool", self.write("replay.json"))
        self.install("bench/host_cost", self.write("host_cost.json"))
        self.install("bench/replay_speed_tool", self.write("replay_speed.json"))
        for name in ("allocator.json", "capture.json", "simulator.json", "tensor.json"):  # no report reads them
            with open(os.path.join(self.root, "made", name), "w", encoding="utf-8") as file:
                file.write("{}")
        self.install("bench/allocator_tool", self.write("allocator.json") + "echo 3 of 4 limits kept")
        self.install("bench/capture", self.write("capture.json") + "echo reserved less")
        self.install("bench/simulator", self.write("simulator.json"))
        self.install("bench/tensor", self.write("tensor.json") + "echo views within")
        self.install("bench/workloads", self.write("workloads.json"))
        self.install("trace/make", MAKE)
        self.install("reports/page", PAGE)
        self.install("trace/bundled/b.tmt", "")
        self.install("trace/bundled/a.tmt", "")

    def write(self, name):
        return WRITE.replace("ROOT", self.root).replace("NAME", name)

    def install(self, name, text):
        """A program of the shell, unless TEXT begins with what else should run it."""
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text if text.startswith("#!") else "#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def command(self, program, *arguments):
        return [sys.executable, "-c", DRIVER, program, self.root, *arguments]

    def environment(self, standing, **more):
        """STANDING: the folder that the user stands in."""
        return {
            **os.environ,
            # This file's own path, not its target: the modules stand beside it.
            "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
            "BUILD_WORKING_DIRECTORY": standing,
            "STARTED": os.path.join(self.root, "started"),
            **more,
        }

    def start(self, program, *arguments, standing=None, stdout=subprocess.PIPE, **more):
        return subprocess.Popen(
            self.command(program, *arguments),
            env=self.environment(standing or self.root, **more),
            cwd="/", stdout=stdout, stderr=subprocess.PIPE, text=True,
        )

    def run_program(self, program, *arguments, **options):
        child = self.start(program, *arguments, **options)
        output, errors = child.communicate(timeout=60)
        return child.returncode, output, errors

    def page(self):
        """The arguments that the page was made with, but for the folder."""
        with open(os.path.join(self.out, "index.html"), encoding="utf-8") as file:
            return file.read()

    def arguments_of(self, file):
        with open(os.path.join(self.root, f"{file}.arguments"), encoding="utf-8") as opened:
            return opened.read().splitlines()

    def test_all_runs_every_step_and_prints_the_paths(self):
        status, output, errors = self.run_program(
            "all", "--out", "out", "--quick", "--seed", "9", "--capacity", "8GiB"
        )
        self.assertEqual((status, errors), (0, ""))
        files = sorted(os.listdir(self.out))
        self.assertEqual(files, sorted(["index.html", *MEASURED]))
        self.assertEqual(self.page(), "--quick")
        paths = f"Page:    {self.out}/index.html\nResults: {self.out}\n"
        self.assertTrue(output.endswith("\n\n" + paths), output)
        self.assertIn("The setting to run for each trace", output)
        self.assertIn("\n\nCost of the caching allocator, beside its limits\n3 of 4 limits", output)
        self.assertIn("\n\nGraph captures\nreserved less", output)
        self.assertIn("\n\nCost of tensors, beside its limits\nviews within", output)
        replay = self.arguments_of("replay.json")
        self.assertEqual(replay[:5], ["--out", self.out, "--seed", "9", "--quick"])
        self.assertNotIn("--config", replay)  # the C program knows which ones
        self.assertIn("8GiB", replay)
        self.assertEqual([os.path.basename(trace) for trace in replay[-2:]], ["a.tmt", "b.tmt"])
        host_cost = self.arguments_of("host_cost.json")
        self.assertEqual(host_cost, ["--out", self.out, "--seed", "9", "--quick"])
        self.assertEqual(self.arguments_of("simulator.json"), host_cost)
        self.assertEqual(self.arguments_of("workloads.json"), host_cost)
        self.assertIn("\n\ntraining: a step takes ", output)
        limits = self.arguments_of("allocator.json")  # no trace here is a __default
        self.assertEqual(limits, ["--quick", *host_cost])
        self.assertEqual(self.arguments_of("capture.json"), ["--quick", *host_cost])
        self.assertEqual(self.arguments_of("tensor.json"), ["--quick", *host_cost])
        speed = self.arguments_of("replay_speed.json")
        self.assertEqual(speed[:-1], host_cost)
        self.assertEqual(os.path.basename(speed[-1]), "made_1000000.tmt")
        self.assertFalse(os.path.exists(speed[-1]))  # it was made for this run alone

    def test_own_configurations_are_passed_on(self):
        status, _, _ = self.run_program("all", "--out", "out", "--config", "x=max_split_size_mb:20")
        self.assertEqual(status, 0)
        for file in ("replay.json", "workloads.json"):
            configs = [word for word in self.arguments_of(file) if "=" in word]
            self.assertEqual(configs, ["x=max_split_size_mb:20"])

    def test_a_folder_with_results_is_kept_and_the_next_name_used(self):
        os.makedirs(self.out)
        with open(os.path.join(self.out, "kept.txt"), "w", encoding="utf-8") as file:
            file.write("kept")
        for expected in ("out-2", "out-3"):
            status, output, errors = self.run_program("all", "--out", "out")
            self.assertEqual(status, 0)
            self.assertIn(os.path.join(self.root, expected), output)
            self.assertIn("holds results already", errors)
        self.assertEqual(os.listdir(self.out), ["kept.txt"])

    def test_an_empty_folder_is_used(self):
        os.makedirs(self.out)
        self.assertEqual(self.run_program("all", "--out", "out")[0], 0)
        self.assertIn("replay.json", os.listdir(self.out))

    def test_runs_at_once_into_one_folder_keep_theirs(self):
        children = [self.start("all", "--out", "out") for _ in range(3)]
        for child in children:
            _, errors = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 0, errors)
        for folder in ("out", "out-2", "out-3"):
            found = os.listdir(os.path.join(self.root, folder))
            self.assertIn("index.html", found)
            self.assertNotIn(runner.MARKER, found)

    def test_a_folder_in_use_says_by_whom_and_is_left_alone(self):
        self.install("bench/replay_tool", f"cat {self.out}/.running >{self.root}/seen; exit 2")
        child = self.start("all", "--out", "out")
        child.communicate(timeout=60)
        with open(os.path.join(self.root, "seen"), encoding="ascii") as file:
            self.assertEqual(int(file.read()), child.pid)
        os.makedirs(self.out)
        with open(os.path.join(self.out, runner.MARKER), "w", encoding="ascii"):
            pass
        self.install("bench/replay_tool", self.write("replay.json"))
        self.assertEqual(self.run_program("all", "--out", "out")[0], 0)
        self.assertEqual(os.listdir(self.out), [runner.MARKER])
        self.assertIn("index.html", os.listdir(self.out + "-2"))

    def test_an_empty_out_is_refused(self):
        for arguments in (["all", "--out", ""], ["replay", "x", "--out="]):
            status, _, errors = self.run_program(*arguments)
            self.assertEqual((status, errors.count("\n")), (2, 1), errors)
            self.assertIn("--out: the value is empty", errors)

    def test_a_folder_too_deep_is_one_line(self):
        for path in ("n/" * 1500, "n/" * 3000):
            status, _, errors = self.run_program("all", "--out", path)
            self.assertEqual((status, errors.count("\n")), (2, 1), errors)

    def test_a_place_that_is_gone_is_one_line(self):
        status, _, errors = self.run_program("all", "--out", "x", standing="/nonexistent")
        self.assertEqual((status, errors.count("\n")), (3, 1), errors)
        self.assertIn("/nonexistent (BUILD_WORKING_DIRECTORY)", errors)
        self.assertFalse(os.path.exists("/nonexistent"))
        gone = os.path.join(self.root, "gone")
        os.makedirs(gone)
        script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
        command = ["sh", "-c", script, "sh", gone, *self.command("all", "--out", "x")]
        child = subprocess.run(
            command, env=self.environment(""), capture_output=True, text=True, check=False
        )
        self.assertEqual((child.returncode, child.stderr.count("\n")), (3, 1), child.stderr)

    def test_lost_output_is_one_line_and_keeps_the_results(self):
        full = os.path.join(self.root, "full")
        os.symlink("/dev/full", full)
        kept, refused = ["replay", "x", "--out", "out"], ["all", "--out", "y"]
        for arguments in (kept, refused, ["all", "--help"]):
            with open(full, "w", encoding="ascii") as stream:
                child = self.start(*arguments, stdout=stream)
                _, errors = child.communicate(timeout=60)
            line = f"{arguments[0]}: cannot write standard output: No space left on device\n"
            self.assertEqual((child.returncode, errors), (2, line))
        self.assertEqual(sorted(os.listdir(self.out)), ["index.html", "replay.json"])
        self.assertFalse(os.path.exists(os.path.join(self.root, "y")))  # before any work

    def test_a_broken_pipe_ends_it_quietly(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w", encoding="ascii") as stream:
            child = self.start("all", "--out", "out", stdout=stream)
            _, errors = child.communicate(timeout=60)
        self.assertEqual((child.returncode, errors), (128 + signal.SIGPIPE, ""))

    def test_a_path_that_the_locale_cannot_print_is_printed_all_the_same(self):
        ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        status, output, errors = self.run_program("all", "--out", "as\u00e9", **ascii_only)
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("Results: " + self.root + "/as\\xe9\n", output)

    def test_without_out_the_folder_is_named_by_the_time(self):
        self.assertEqual(self.run_program("all")[0], 0)
        (made,) = os.listdir(os.path.join(self.root, runner.RESULT_FOLDER))
        self.assertRegex(made, r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$")

    def test_an_impossible_folder_is_one_line_and_exit_2(self):
        self.install("file", "")
        for path in ("file", "file/below", "/proc/no/such"):
            status, output, errors = self.run_program("all", "--out", path)
            self.assertEqual(status, 2, errors)
            self.assertEqual(output, "")
            self.assertEqual(errors.count("\n"), 1, errors)
            self.assertIn(path, errors)

    def test_a_failing_program_gives_its_message_and_status_and_the_page_shows_the_rest(self):
        self.install("bench/host_cost", FAIL)
        status, output, errors = self.run_program("all", "--out", "out")
        self.assertEqual((status, errors), (1, "host_cost: 3 blocks leaked\n"))
        self.assertEqual(sorted(os.listdir(self.out)), ["index.html", "replay.json"])
        self.assertEqual(self.page(), "--note " + runner.NOTE_FAILED)
        self.assertIn("index.html", output)

    def test_a_failure_before_any_result_leaves_no_folder(self):
        self.install("bench/replay_tool", "exit 2")
        self.assertEqual(self.run_program("all", "--out", "out")[0], 2)
        self.assertFalse(os.path.exists(self.out))

    def test_a_program_that_dies_is_named_with_its_signal(self):
        self.install("bench/host_cost", "kill -ABRT $$")
        status, _, errors = self.run_program("all", "--out", "out")
        self.assertEqual(status, 1)
        self.assertIn("host_cost was ended by SIGABRT", errors)

    def interrupt(self, number, *arguments):
        """Sends a signal once the stand-in of the first waiting step has begun."""
        started = os.path.join(self.root, "started")
        child = self.start(*arguments)
        while not os.path.exists(started):
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        child.send_signal(number)
        output, errors = child.communicate(timeout=60)
        os.remove(started)
        return child.returncode, output, errors

    def test_an_interrupt_reaches_the_program_once_and_the_page_shows_what_is_complete(self):
        self.install("bench/host_cost", WAIT)
        for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number=number):
                self.out = os.path.join(self.root, f"out{expected}")
                status, output, errors = self.interrupt(number, "all", "--out", self.out)
                self.assertEqual(status, expected, errors)
                line = "all: interrupted; making the page of what is complete\n"
                self.assertEqual(errors, line)
                self.assertEqual(sorted(os.listdir(self.out)), ["index.html", "replay.json"])
                self.assertEqual(self.page(), "--note " + runner.NOTE_INTERRUPTED)
                self.assertIn("index.html", output)

    def test_an_interrupt_before_anything_is_complete_leaves_no_folder(self):
        self.install("bench/replay_tool", WAIT)
        status, _, errors = self.interrupt(signal.SIGINT, "all", "--out", "out")
        self.assertEqual((status, errors), (130, "all: interrupted\n"))
        self.assertFalse(os.path.exists(self.out))

    def test_an_interrupt_of_the_page_shows_no_traceback(self):
        started = os.path.join(self.root, "started")
        waits = f"import time\nopen({started!r}, 'w')\ntime.sleep(60)\n"
        self.install("reports/page", "#!/usr/bin/python3\n" + waits)
        status, _, errors = self.interrupt(signal.SIGINT, "all", "--out", "out")
        self.assertEqual(status, 130)
        self.assertNotIn("Traceback", errors)
        self.assertEqual(sorted(os.listdir(self.out)), MEASURED)

    def test_what_the_page_says_when_it_fails_is_shown(self):
        self.install("reports/page", "echo 'page: why' >&2; exit 2")
        status, _, errors = self.run_program("all", "--out", "out")
        self.assertEqual(status, 2)
        self.assertTrue(errors.startswith("page: why\nkept in "), errors)

    def test_wrong_usage_is_one_line_and_a_pointer_to_help(self):
        status, _, errors = self.run_program("all", "--unknown")
        self.assertEqual(status, 2)
        self.assertEqual(errors, "all: unrecognized arguments: --unknown\nTry 'all --help'\n")
        status, output, _ = self.run_program("all", "--help")
        self.assertEqual(status, 0)
        self.assertIn("--config NAME=CONF", output)

    def test_replay_passes_the_users_files_and_options_on(self):
        self.install("bench/replay_tool", self.write("replay.json") + "echo ranking")
        self.install("bench/host_cost", FAIL)  # not called
        status, output, errors = self.run_program(
            "replay", "x.pickle", "--fraction", "0.5", "--out=out"
        )
        self.assertEqual((status, errors), (0, ""))
        replay = self.arguments_of("replay.json")
        self.assertEqual(replay, ["--out", self.out, "x.pickle", "--fraction", "0.5"])
        self.assertTrue(output.startswith("ranking\n"))
        self.assertIn("index.html", output)

    def test_a_file_that_cannot_be_read_does_not_cost_the_page_of_the_others(self):
        self.install("bench/replay_tool", self.write("replay.json") + "exit 2")
        status, output, errors = self.run_program("replay", "good", "bad", "--out", "out")
        self.assertEqual((status, errors), (2, ""))
        self.assertIn("index.html", output)
        self.assertIn("left out", self.page())

    def test_replay_as_json_is_nothing_but_json(self):
        self.install("bench/replay_tool", self.write("replay.json") + "echo '{}'")
        for spelling in (["--format", "json"], ["--format=json"], ["--fo=json"]):
            status, output, errors = self.run_program("replay", "x", *spelling)
            self.assertEqual((status, output), (0, "{}\n"), errors)
            self.assertIn("index.html", errors)

    def test_an_abbreviated_out_is_understood_as_the_c_program_would(self):
        self.assertEqual(self.run_program("replay", "x", "--ou", "out")[0], 0)
        self.assertTrue(os.path.exists(os.path.join(self.out, "index.html")))
        status, _, errors = self.run_program("replay", "x", "--out")
        self.assertEqual((status, errors.count("\n")), (2, 2), errors)

    def test_replay_leaves_usage_to_the_c_program(self):
        self.install("bench/replay_tool", "echo 'replay: usage' >&2; exit 2")
        status, _, errors = self.run_program("replay")
        self.assertEqual((status, errors), (2, "replay: usage\n"))
        self.assertFalse(os.path.exists(os.path.join(self.root, runner.RESULT_FOLDER)))


if __name__ == "__main__":
    unittest.main()
