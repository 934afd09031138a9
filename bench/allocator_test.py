"""Which traces //bench:allocator plays, and the arithmetic of its instruction counts, with stand-ins
for the program and for valgrind.
"""

import contextlib
import io
import os
import stat
import tempfile
import unittest
from unittest import mock

from bench import allocator, instructions, runner

# Plays what --iterations says, three pairs an iteration.
TOOL = """#!/bin/sh
printf '%s\\n' "$@" >ROOT/arguments
while [ $# -gt 1 ] && [ "$1" != --iterations ]; do shift; done
[ "$1" != --iterations ] || echo "pattern on subject: $(($2 * 3)) pairs, of which 0 reached"
"""
# 1,000,000 instructions to start and end, and COST for each pair.
VALGRIND = """#!/bin/sh
for word in "$@"; do case $word in --log-file=*) log=${word#--log-file=};; esac; done
shift 3
"$@"
while [ "$1" != --iterations ]; do shift; done
echo "==1== Collected : $((1000000 + $2 * 3 * COST))" >"$log"
"""


class Allocator(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = temporary.name
        self.tool = self.install("bench/allocator_tool", TOOL.replace("ROOT", self.root))
        self.install("trace/bundled/b__default.tmt", "")
        self.install("trace/bundled/a__default.tmt", "")
        self.install("trace/bundled/a__expandable.tmt", "")
        self.runner = runner.Runner("allocator")

    def install(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def valgrind(self, cost):
        self.install("bin/valgrind", VALGRIND.replace("COST", str(cost)))
        path = os.path.join(self.root, "bin") + os.pathsep + os.environ["PATH"]
        return mock.patch.dict(os.environ, {"PATH": path})

    def lines(self, patterns):
        return list(instructions.lines(self.runner, self.tool, patterns))

    def test_a_pairs_cost_is_the_difference_of_two_runs(self):
        with self.valgrind(cost=417):
            lines = self.lines((("pair_512", 10, 30, 450), ("mixed", 10, 30, 400)))
        self.assertEqual(lines[1].split(), "pair_512 417 at most 450 yes mutex_list 417".split())
        self.assertEqual(lines[2].split(), "mixed 417 at most 400 NO mutex_list 417".split())

    def test_without_valgrind_the_table_says_what_is_missing(self):
        with mock.patch.dict(os.environ, {"PATH": os.path.join(self.root, "nowhere")}):
            self.assertEqual(len(self.lines((("pair_512", 10, 30, 450),))), 1)
            self.assertIn("valgrind", self.lines(())[0])

    def test_what_callgrind_does_not_say_is_told(self):
        self.install("bin/valgrind", "#!/bin/sh\nexit 0\n")
        path = os.path.join(self.root, "bin") + os.pathsep + os.environ["PATH"]
        with mock.patch.dict(os.environ, {"PATH": path}):
            with self.assertRaises(FileNotFoundError):
                self.lines((("pair_512", 10, 30, 450),))

    def played(self, *argv):
        tools = runner.Tools(self.root)
        with contextlib.redirect_stdout(io.StringIO()):
            allocator.job(self.runner, list(argv), tools)
        with open(os.path.join(self.root, "arguments"), encoding="utf-8") as file:
            return file.read().split()

    def test_bundled_recordings_are_played_and_those_beside_the_checkout(self):
        self.install("shared/data/pytorch/loader.pickle.gz", "")
        self.install("shared/data/pytorch/a__default.pickle.gz", "")
        self.install("checkout/WORKSPACE", "")
        checkout = os.path.join(self.root, "checkout")
        with mock.patch.dict(os.environ, {"BUILD_WORKSPACE_DIRECTORY": checkout}):
            words = self.played("--filter", "trace", "mine.tmt")
        names = [os.path.basename(word) for word in words]
        self.assertEqual(
            names,
            ["a__default.tmt", "b__default.tmt", "loader.pickle.gz", "--filter", "trace", "mine.tmt"],
        )

    def test_an_interrupt_is_said_once(self):
        tools = runner.Tools(self.root)
        for status, message in ((130, ""), (-9, "interrupted")):  # it may end before it can speak
            end = f"exit {status}" if status > 0 else "kill -9 $$"
            self.install("bench/allocator_tool", f"#!/bin/sh\ntrap : INT\nkill -INT $PPID\n{end}\n")
            with self.assertRaises(runner.Stop) as stopped:
                allocator.job(runner.Runner("allocator"), [], tools)
            self.assertEqual((stopped.exception.status, str(stopped.exception)), (130, "interrupted"))
            self.assertEqual(stopped.exception.message, message)


if __name__ == "__main__":
    unittest.main()
