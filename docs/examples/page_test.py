"""A page of docs/ shows what its programs print: page_test.py PAGE PROGRAM... PICTURE.svg...

The page's lines that are indented by four are all that the programs print, in their order. Each
number in its words stands in that output too, besides those in `code`, of releases and of public
reports. Commands of the page stand between lines of ```. The pictures are shown by the page, and
small.
"""

import pathlib
import re
import subprocess
import sys
import unittest

PAGE, *OTHERS = map(pathlib.Path, sys.argv[1:])
PROGRAMS = [path for path in OTHERS if path.suffix != ".svg"]
PICTURES = [path for path in OTHERS if path.suffix == ".svg"]
TEXT = PAGE.read_text(encoding="utf-8")
IMAGE_BYTES_MAX = 60 * 1024
NUMBER = r"(?<![\w.])\d+(?:\.\d+)?"
# Not figures: code, releases of PyTorch, public reports, targets of links, places in a list.
NO_FIGURES = r"`[^`]*`|(PyTorch|CUDA) \d+(\.\d+)?|\b\w+#\d+|\]\([^)]*\)|^\d+\. "


def output():
    text = ""
    for program in PROGRAMS:
        result = subprocess.run([program], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise AssertionError(f"{program}: {result.stderr}")
        text += result.stdout
    return text


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

    def test_the_page_shows_what_its_programs_print(self):
        shown = "".join(line[4:] + "\n" for line in TEXT.splitlines() if line.startswith("    "))
        self.assertEqual(shown, output())

    def test_every_number_of_the_words_is_printed(self):
        printed = set(re.findall(NUMBER, output()))
        said = re.findall(NUMBER, words())
        self.assertEqual([number for number in said if number not in printed], [])

    def test_the_page_names_its_programs(self):
        self.assertTrue(PROGRAMS)
        commands = [f"bazel run //docs/examples:{program.name}" for program in PROGRAMS]
        lines = TEXT.splitlines()
        self.assertEqual([command for command in commands if command not in lines], [])

    def test_pictures_are_shown_and_small(self):
        for picture in PICTURES:
            self.assertIn(f"](images/{picture.name})", TEXT)
            self.assertLess(picture.stat().st_size, IMAGE_BYTES_MAX)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
