"""What run prints and keeps, and how it ends. Arguments: run, compare."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

TOOL, COMPARE = (os.path.abspath(path) for path in sys.argv[1:3])


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)

    def run_tool(self, *arguments, tool=TOOL):
        environment = os.environ | {"BUILD_WORKING_DIRECTORY": self.temporary.name}
        result = subprocess.run(
            [tool, *arguments], capture_output=True, text=True, env=environment, check=False
        )
        return result.returncode, result.stdout, result.stderr

    def exists(self, name):
        return os.path.exists(os.path.join(self.temporary.name, name))

    def test_the_list_names_programs_and_variants(self):
        status, text, errors = self.run_tool("--list")
        self.assertEqual((status, errors), (0, ""))
        for name in ("offload", "patterns", "serving", "sharded", "transformer"):
            self.assertRegex(text, rf"(?m)^{name} ")
        self.assertRegex(text, r"devices 2 to 8; variants: record_stream kept\n")

    def test_settings_and_programs_are_compared(self):
        settings = ["--config", "default=", "--config", "direct=x_allocator:direct"]
        status, text, errors = self.run_tool(
            "offload", "sharded", *settings, "--races", "--schedule", "random:4", "--seed", "6"
        )
        self.assertEqual((status, errors), (0, ""))
        self.assertTrue(text.startswith("seed 6\n"), text)
        rows = re.findall(r"(?m)^(offload|sharded) +(default|direct) +([0-9a-f]{16}) .* 0$", text)
        self.assertEqual(len(rows), 4, text)
        self.assertEqual(len({checksum for _, _, checksum in rows}), 1, text)

    def test_one_run_can_be_recorded_and_two_runs_ask_the_same(self):
        for name in ("one.tmt", "two.tmt"):
            status, _, errors = self.run_tool(
                "patterns", "--variant", "mixed", "--record", name, "--numerics-off"
            )
            self.assertEqual((status, errors), (0, ""))
        status, text, errors = self.run_tool("one.tmt", "two.tmt", tool=COMPARE)
        self.assertEqual((status, errors), (0, ""))
        self.assertNotIn("first allocation that differs", text)

    def test_out_of_memory_ends_with_1_and_keeps_no_file(self):
        status, _, errors = self.run_tool("patterns", "--capacity", "4MiB", "--record", "no.tmt")
        self.assertEqual(status, 1)
        self.assertRegex(errors, "^run: patterns under default: CUDA out of memory")
        self.assertEqual(errors.count("\n"), 1)
        self.assertFalse(self.exists("no.tmt"))

    def test_wrong_words_end_with_2(self):
        wrong = {
            ("nosuch",): "'nosuch' is no program; there are: ",
            (): "which program",
            ("patterns", "--size", "huge"): "small, medium or true",
            ("patterns", "--variant", "nosuch"): "no variant of patterns; there are: all",
            ("sharded", "--devices", "9"): "2 to 8 devices, not on 9",
            ("sharded", "--devices", "17"): "at most 16",
            ("patterns", "--schedule", "late"): "--schedule",
            ("patterns", "--config", "a=x_allocator:none"): "x_allocator is",
            ("patterns", "sharded", "--record", "a.tmt"): "one program under one setting",
        }
        for arguments, words in wrong.items():
            status, _, errors = self.run_tool(*arguments)
            self.assertEqual(status, 2, arguments)
            self.assertIn(words, errors)
        self.assertFalse(self.exists("a.tmt"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
