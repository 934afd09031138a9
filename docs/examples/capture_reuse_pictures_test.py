"""The pictures of docs/capture-reuse.md are what their program draws of what the example prints."""

import os
import pathlib
import re
import subprocess
import unittest

FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"])
IMAGES = pathlib.Path("docs/images")


def words_of(svg):
    return [re.sub(r"<[^>]*>", "", text) for text in re.findall(r"<text.*?</text>", svg, re.S)]


def corners_of(svg):
    """Corners of areas and lines, in whole points: releases of matplotlib differ in less."""
    paths = re.findall(r'<path d="([^"]*)"', svg)
    return [[round(float(number)) for number in re.findall(r"-?[\d.]+", path)] for path in paths]


class Pictures(unittest.TestCase):
    def test_the_pictures_are_drawn_of_what_the_example_prints(self):
        environment = os.environ | {"BUILD_WORKING_DIRECTORY": str(FOLDER)}
        program = ["docs/examples/capture_reuse_pictures", FOLDER]
        subprocess.run(program, stdout=subprocess.DEVNULL, check=True, env=environment)
        for name in ("capture_graphs.svg", "capture_costs.svg"):
            drawn = (FOLDER / name).read_text(encoding="utf-8")
            committed = (IMAGES / name).read_text(encoding="utf-8")
            self.assertEqual(words_of(committed), words_of(drawn))
            self.assertEqual(corners_of(committed), corners_of(drawn))
            self.assertGreater(len(corners_of(drawn)), 4)


if __name__ == "__main__":
    unittest.main()
