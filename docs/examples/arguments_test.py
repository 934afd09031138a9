"""What programs that print a page say of arguments that they do not know: arguments_test.py
PROGRAM... Nothing is printed, the exit status is 2, and one line says what is wrong.
"""

import pathlib
import subprocess
import sys
import unittest

PROGRAMS = [pathlib.Path(path) for path in sys.argv[1:]]


def run(program, *arguments, **options):
    return subprocess.run(
        [program, *arguments], stderr=subprocess.PIPE, text=True, check=False, **options
    )


class Arguments(unittest.TestCase):
    def refuses(self, program, word, *arguments):
        result = run(program, *arguments, stdout=subprocess.PIPE)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        first, *hint = result.stderr.splitlines()
        self.assertRegex(first, f"^{program.name}: .*{word}")
        self.assertEqual(hint, [f"Try '{program.name} --help'"])

    def test_unknown_options_are_refused(self):
        for program in PROGRAMS:
            with self.subTest(program.name):
                self.refuses(program, "--no-such", "--no-such")

    def test_surplus_arguments_are_refused(self):
        for program in PROGRAMS:
            with self.subTest(program.name):
                self.refuses(program, "two|one", "one", "two")

    def test_output_that_cannot_be_written_is_an_error(self):
        for program in PROGRAMS:
            with self.subTest(program.name), open("/dev/full", "w", encoding="utf-8") as full:
                result = run(program, "--help", stdout=full)
                self.assertEqual(result.returncode, 2)
                self.assertRegex(result.stderr, f"^{program.name}: cannot write.*No space left")
                self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_help_says_what_it_does(self):
        for program in PROGRAMS:
            with self.subTest(program.name):
                result = run(program, "--help", stdout=subprocess.PIPE)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertRegex(result.stdout, f"^Usage: {program.name} ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
