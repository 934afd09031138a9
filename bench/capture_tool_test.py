"""The capture benchmark from outside: its table, its result file, exit statuses, what bad input gets.

Argument: the program.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = os.path.abspath(sys.argv[1])
MIB = 1 << 20
FORMS = ("off", "first_form", "current")


class Capture(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.out = os.path.join(self.folder, "out")

    def start(self, *arguments):
        environment = {k: v for k, v in os.environ.items() if k != "BUILD_WORKING_DIRECTORY"}
        return subprocess.Popen(
            [TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder, env=environment,
        )

    def run_tool(self, *arguments):
        child = self.start(*arguments)
        output, errors = child.communicate(timeout=60)
        return child.returncode, output, errors

    def expect_refusal(self, arguments, *words):
        status, output, errors = self.run_tool(*arguments)
        self.assertEqual((status, output), (2, ""), errors)
        lines = [line for line in errors.splitlines() if not line.startswith("Try ")]
        self.assertEqual(len(lines), 1, errors)
        for word in ("capture: ", *words):
            self.assertIn(word, lines[0])

    def results(self, text):
        results = json.loads(text)
        self.assertEqual(results["context"]["tidemark_schema"], "1")
        return results["context"], {run["name"]: run for run in results["benchmarks"]}

    def test_the_table_and_the_file_say_the_same(self):
        status, output, errors = self.run_tool("--quick", "--out", "out", "--seed", "7")
        self.assertEqual((status, errors), (0, ""))
        self.assertTrue(output.endswith("Results: " + os.path.join("out", "capture.json") + "\n"))
        self.assertEqual(os.listdir(self.out), ["capture.json"])
        with open(os.path.join(self.out, "capture.json"), encoding="utf-8") as file:
            context, runs = self.results(file.read())
        self.assertEqual(context["seed"], "7")
        expected = {f"capture/step/{form}" for form in FORMS}
        expected |= {"capture/long/off", "capture/long/current"}
        for nodes in (100, 1000, 10000):
            expected |= {f"capture/growth/{series}/{nodes}" for series in (*FORMS, "chase")}
        expected.remove("capture/growth/first_form/10000")  # takes seconds
        self.assertEqual(set(runs), expected)
        lines = output.splitlines()
        for form in FORMS:
            step = runs[f"capture/step/{form}"]
            name = form.replace("_", " ")
            words = next(line for line in lines if line.startswith(name))[len(name) :].split()
            self.assertEqual(int(words[0]), step["nodes"])
            self.assertEqual(int(words[1]), round(step["peak_allocated_bytes"] / MIB))
            self.assertEqual(int(words[2]), round(step["peak_reserved_bytes"] / MIB))
            self.assertEqual(words[3], f"{100 * step['allocator_share']:.1f}%")
            self.assertIn("exponent", runs[f"capture/growth/{form}/100"])
        # Without reuse each layer holds memory of its own; the first form's markers are nodes.
        off, first, current = (runs[f"capture/step/{form}"] for form in FORMS)
        self.assertLess(4 * current["peak_reserved_bytes"], off["peak_reserved_bytes"])
        self.assertEqual(current["nodes"], off["nodes"])
        self.assertGreater(first["nodes"], off["nodes"])
        quotient = runs["capture/long/current"]["x_off"]
        self.assertIn(f"current form over none: {quotient:.3f} ", output)
        chase = runs["capture/growth/chase/100"]["exponent"]
        for name, limit in ("long/current", 1.05), ("growth/current/100", chase + 0.1):
            run = runs["capture/" + name]
            self.assertAlmostEqual(run["limit"], limit)
            measured = run["x_off" if name == "long/current" else "exponent"]
            self.assertEqual(run["within_limit"], measured <= run["limit"])
            kept = "yes" if run["within_limit"] else "NO"
            self.assertRegex(output, f" {measured:.2f} +{limit:.2f}  {kept}\n")

    def test_json_is_all_that_stdout_gets(self):
        status, output, errors = self.run_tool("--quick", "--format", "json", "--out", self.out)
        self.assertEqual((status, errors), (0, ""))
        self.results(output)
        with open(os.path.join(self.out, "capture.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), output)

    def test_results_are_never_written_over(self):
        os.mkdir(self.out)
        with open(os.path.join(self.out, "capture.json"), "w", encoding="utf-8") as file:
            file.write("mine")
        status, _, errors = self.run_tool("--quick", "--out", self.out)
        self.assertEqual(status, 0)
        self.assertIn("out-2", errors)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "out-2", "capture.json")))
        with open(os.path.join(self.out, "capture.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    def test_wrong_usage_and_folders_are_refused_in_a_line(self):
        self.expect_refusal(["--format", "xml"], "xml")
        self.expect_refusal(["--seed", "x"], "x")
        self.expect_refusal(["trace.tmt"], "trace.tmt")
        with open(self.out, "w", encoding="utf-8"):
            self.expect_refusal(["--quick", "--out", self.out], self.out)

    def test_an_interrupt_leaves_no_folder(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            child = self.start("--out", self.out)
            while not os.path.exists(os.path.join(self.out, ".running")) and child.poll() is None:
                time.sleep(0.001)
            child.send_signal(number)
            _, errors = child.communicate(timeout=60)
            self.assertEqual(child.returncode, status, errors)
            self.assertEqual(errors, "capture: interrupted\n")
            self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
