"""The pictures of docs/capture-reuse.md are what their program draws of what the example prints."""

import os
import pathlib
import subprocess
import unittest

import svg_compare

FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"]) / "made" / "by it"
IMAGES = pathlib.Path("docs/images")


class Pictures(unittest.TestCase):
    def test_the_pictures_are_drawn_of_what_the_example_prints(self):
        program = ["docs/examples/capture_reuse_pictures", FOLDER]
        subprocess.run(program, stdout=subprocess.DEVNULL, check=True)
        for name in ("capture_graphs.svg", "capture_costs.svg"):
            svg_compare.check_same(self, IMAGES / name, FOLDER / name)

    def test_a_folder_that_cannot_be_made_is_one_line(self):
        taken = FOLDER.parents[1] / "taken"
        taken.write_text("a file")
        program = ["docs/examples/capture_reuse_pictures", taken / "images"]
        run = subprocess.run(program, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr, f"{taken / 'images'}: Not a directory\n")


if __name__ == "__main__":
    unittest.main()
