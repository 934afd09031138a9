"""The picture of docs/fragmentation.md is what its program draws of the example's numbers."""

import os
import pathlib
import re
import subprocess
import unittest

FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"])


def words_of(svg):
    return [re.sub(r"<[^>]*>", "", text) for text in re.findall(r"<text.*?</text>", svg, re.S)]


def corners_of(svg):
    """Corners of areas and lines, in whole points: releases of matplotlib differ in less."""
    paths = re.findall(r'<path d="([^"]*)"', svg)
    return [[round(float(number)) for number in re.findall(r"-?[\d.]+", path)] for path in paths]


class FragmentationPicture(unittest.TestCase):
    def test_the_picture_is_drawn_of_the_numbers_that_the_example_prints(self):
        steps, picture = FOLDER / "steps.csv", FOLDER / "picture.svg"
        with open(steps, "w", encoding="utf-8") as file:
            subprocess.run(["docs/examples/fragmentation", "steps"], stdout=file, check=True)
        subprocess.run(["docs/examples/fragmentation_picture", steps, picture], check=True)
        drawn = picture.read_text(encoding="utf-8")
        committed = pathlib.Path("docs/images/fragmentation.svg").read_text(encoding="utf-8")
        self.assertEqual(words_of(committed), words_of(drawn))
        self.assertIn("256 MiB", "".join(words_of(drawn)))
        self.assertEqual(corners_of(committed), corners_of(drawn))
        self.assertGreater(len(corners_of(drawn)), 4)


if __name__ == "__main__":
    unittest.main()
