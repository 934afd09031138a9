"""The pictures of docs/capture-reuse.md are what their program draws of what the example prints."""

import os
import pathlib
import subprocess
import unittest

import svg_compare

FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"])
IMAGES = pathlib.Path("docs/images")


class Pictures(unittest.TestCase):
    def test_the_pictures_are_drawn_of_what_the_example_prints(self):
        environment = os.environ | {"BUILD_WORKING_DIRECTORY": str(FOLDER)}
        program = ["docs/examples/capture_reuse_pictures", FOLDER]
        subprocess.run(program, stdout=subprocess.DEVNULL, check=True, env=environment)
        for name in ("capture_graphs.svg", "capture_costs.svg"):
            svg_compare.check_same(self, IMAGES / name, FOLDER / name)


if __name__ == "__main__":
    unittest.main()
