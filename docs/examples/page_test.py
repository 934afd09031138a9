"""A page of docs/ shows what its program prints: page_test.py PAGE PROGRAM [PICTURE...]

The page's lines that are indented by four are all that the program prints, in its order. Each number
in its words stands in that output too, besides those in `code`, of releases and of public reports.
Commands of the page stand between lines of ```. The pictures are shown by the page, and small.
"""

import pathlib
import re
import subprocess
import sys
import unittest

PAGE, PROGRAM, *PICTURES = map(pathlib.Path, sys.argv[1:])
TEXT = PAGE.read_text(encoding="utf-8")
IMAGE_BYTES_MAX = 60 * 1024
NUMBER = r"(?<![\w.])\d+(?:\.\d+)?"
# Not figures: code, releases of PyTorch, public reports, targets of links, places in a list.
NO_FIGURES = r"`[^`]*`|(PyTorch|CUDA) \d+(\.\d+)?|\b\w+#\d+|\]\([^)]*\)|^\d+\. "


def output():
    result = subprocess.run([PROGRAM], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout


def words():
    prose, fenced = [], False
    for line in TEXT.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            prose.append(line)
    return re.sub(NO_FIGURES, " ", "\n".join(prose), flags=re.M)


class Page(unittest.TestCase):
    maxDiff = None

    def test_the_page_shows_what_its_program_prints(self):
        shown = "".join(line[4:] + "\n" for line in TEXT.splitlines() if line.startswith("    "))
        self.assertEqual(shown, output())

    def test_every_number_of_the_words_is_printed(self):
        printed = set(re.findall(NUMBER, output()))
        said = re.findall(NUMBER, words())
        self.assertEqual([number for number in said if number not in printed], [])

    def test_the_page_names_its_program(self):
        self.assertIn(f"bazel run //docs/examples:{PROGRAM.name}", TEXT)

    def test_pictures_are_shown_and_small(self):
        for picture in PICTURES:
            self.assertIn(f"](images/{picture.name})", TEXT)
            self.assertLess(picture.stat().st_size, IMAGE_BYTES_MAX)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
