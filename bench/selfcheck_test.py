"""What selfcheck says where there is nothing to check. Argument: the program."""

import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.abspath(sys.argv[1])


class Selfcheck(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)

    def expect_refusal(self, argument, words):
        environment = {k: v for k, v in os.environ.items() if k != "BUILD_WORKING_DIRECTORY"}
        result = subprocess.run(
            [TOOL, argument], capture_output=True, text=True, cwd=self.temporary.name,
            env=environment, check=False,
        )
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(words, result.stderr)

    def test_a_file_that_is_not_there_is_unreadable_input(self):
        self.expect_refusal("nosuchfile", "'nosuchfile' cannot be read: No such file")
        self.expect_refusal("", "'' cannot be read")

    def test_a_folder_without_a_recording_checks_nothing(self):
        os.makedirs(os.path.join(self.temporary.name, "empty/below"))
        self.expect_refusal("empty", "'empty' holds no recording")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
