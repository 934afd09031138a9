"""The picture of docs/tensor.md is drawn of what the example found, and what it found adds up."""

import csv
import os
import pathlib
import subprocess
import unittest

import svg_compare

FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"])


class TensorPicture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.moments = FOLDER / "moments.csv"
        with open(cls.moments, "w", encoding="utf-8") as file:
            subprocess.run(["docs/examples/tensor_moments"], stdout=file, check=True)
        cls.found = []  # (line, rows by kind)
        with open(cls.moments, encoding="utf-8", newline="") as file:
            for kind, *words in csv.reader(file):
                if kind == "moment":
                    cls.found.append((words[0], {}))
                else:
                    cls.found[-1][1].setdefault(kind, []).append(words)

    def test_the_picture_is_drawn_of_what_the_example_found(self):
        picture = FOLDER / "picture.svg"
        subprocess.run(["docs/examples/tensor_picture", self.moments, picture], check=True)
        words = svg_compare.check_same(self, "docs/images/tensor.svg", picture)
        for line, _ in self.found:
            self.assertIn(line, words)

    def test_arrows_make_the_counts(self):
        self.assertGreater(len(self.found), 3)
        for line, kinds in self.found:
            impls = kinds["impl"]
            for number, *_ in impls:
                handles = sum(impl == number for _, impl in kinds["handle"])
                bases = sum(impl[7] == number for impl in impls)
                strong = [int(impl[4]) for impl in impls if impl[0] == number]
                self.assertEqual(strong, [handles + bases], line)
            for number, _, strong, *_ in kinds["storage"]:
                self.assertEqual(int(strong), sum(impl[5] == number for impl in impls), line)

    def test_a_storage_has_its_block_and_no_other_is_allocated(self):
        for line, kinds in self.found:
            held = [
                (int(first), int(first) + int(size)) for _, size, _, _, first in kinds["storage"]
            ]
            blocks = [
                (int(first), int(end))
                for _, first, end, state in kinds["block"]
                if state == "allocated"
            ]
            self.assertEqual(held, blocks, line)
            self.assertEqual(kinds["block"][-1][2], kinds["segment"][0][1], line)


if __name__ == "__main__":
    unittest.main()
