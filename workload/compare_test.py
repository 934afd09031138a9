"""What compare says of two traces, and when it is not content. Arguments: compare, make."""

import os
import subprocess
import sys
import tempfile
import unittest

TOOL, MAKE = (os.path.abspath(path) for path in sys.argv[1:3])


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        for name, seed, events in (("a", "1", "4000"), ("b", "2", "4000"), ("c", "1", "3000")):
            path = os.path.join(cls.temporary.name, f"{name}.tmt")
            arguments = [MAKE, path, "--seed", seed, "--events", events]
            subprocess.run(arguments, check=True, capture_output=True)

    def compare(self, *arguments):
        environment = os.environ | {"BUILD_WORKING_DIRECTORY": self.temporary.name}
        result = subprocess.run(
            [TOOL, *arguments], capture_output=True, text=True, env=environment, check=False
        )
        return result.returncode, result.stdout, result.stderr

    def test_a_trace_is_as_itself(self):
        status, text, errors = self.compare("a.tmt", "a.tmt")
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("+0.00 %", text)
        self.assertNotIn("OVER", text)
        self.assertNotIn("first allocation that differs", text)

    def test_fewer_allocations_than_the_limit_allows_end_with_1(self):
        status, text, _ = self.compare("c.tmt", "a.tmt")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"allocations +\d+ +\d+ +-2\d\.\d\d %   OVER 10 %")
        status, _, _ = self.compare("c.tmt", "a.tmt", "--count", "0.5", "--peak", "1")
        self.assertEqual(status, 0)

    def test_the_picture_lies_beside_the_figures(self):
        limits = ["--peak", "9", "--count", "9", "--distance", "1"]
        status, text, errors = self.compare("a.tmt", "b.tmt", "--out", "pictures", *limits)
        self.assertEqual((status, errors), (0, ""))
        folder = os.path.join(self.temporary.name, "pictures")
        self.assertEqual(
            sorted(os.listdir(folder)), ["requests.json", "requests.png", "requests.svg"]
        )
        self.assertIn(os.path.join(folder, "requests.png"), text)

    def test_what_cannot_be_read_is_one_line(self):
        status, text, errors = self.compare("a.tmt", "nosuchfile")
        self.assertEqual((status, text), (2, ""))
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertEqual(self.compare("a.tmt")[0], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
