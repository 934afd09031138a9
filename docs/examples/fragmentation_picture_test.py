"""The picture of docs/fragmentation.md is what its program draws of the example's numbers."""

import os
import pathlib
import subprocess
import unittest

import svg_compare

FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"])


class FragmentationPicture(unittest.TestCase):
    def test_the_picture_is_drawn_of_the_numbers_that_the_example_prints(self):
        steps, picture = FOLDER / "steps.csv", FOLDER / "picture.svg"
        with open(steps, "w", encoding="utf-8") as file:
            subprocess.run(["docs/examples/fragmentation", "steps"], stdout=file, check=True)
        subprocess.run(["docs/examples/fragmentation_picture", steps, picture], check=True)
        words = svg_compare.check_same(self, "docs/images/fragmentation.svg", picture)
        self.assertIn("256 MiB", "".join(words))


if __name__ == "__main__":
    unittest.main()
