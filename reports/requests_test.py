"""The picture of two programs' requests: what is drawn is what the file says."""

import json
import os
import tempfile
import unittest

from reports import requests
from reports.reader import ResultError

SIDE = {"name": "a", "allocations": 4, "peak_requested_bytes": 9 << 20,
        "requested_bytes": [0, 5 << 20, 9 << 20, 1 << 20]}
SIZES = [[512, 2, 0], [1024, 1, 2], [1 << 20, 1, 2]]
COMPARISON = {"run": SIDE, "recording": SIDE | {"name": "b"}, "size_distance": 0.5, "sizes": SIZES}


class Requests(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = self.temporary.name

    def write(self, value):
        with open(os.path.join(self.folder, "requests.json"), "w", encoding="utf-8") as file:
            json.dump(value, file)

    def test_shares_rise_at_each_size_that_is_asked_for(self):
        self.assertEqual(
            requests.shares(SIZES, 1),
            ([512, 512, 512, 1024, 1024, 1 << 20, 1 << 20, 1 << 20],
             [0.0, 0.0, 0.5, 0.5, 0.75, 0.75, 1.0, 1.0]),
        )
        self.assertEqual(requests.shares(SIZES, 2)[1], [0.0, 0.0, 0.5, 0.5, 1.0, 1.0])

    def test_the_distance_is_where_the_shares_are_furthest_apart(self):
        self.assertEqual(requests.place_of_distance(SIZES), (512, 0.5, 0.0))

    def test_pictures_name_both_and_their_peak(self):
        self.write(COMPARISON)
        paths = requests.build(self.folder)
        self.assertEqual([path.rsplit(".", 1)[1] for path in paths], ["png", "svg"])
        with open(paths[1], encoding="utf-8") as file:
            svg = file.read()
        for words in ("a beside b", "run, peak 9.00", "furthest apart 50.0"):
            self.assertIn(words, svg.replace("\u00a0", " "))

    def test_what_is_wrong_is_one_line(self):
        with self.assertRaisesRegex(ResultError, "no such file"):
            requests.build(self.folder)
        self.write(COMPARISON | {"sizes": [["many", 1, 2]]})
        with self.assertRaisesRegex(ResultError, r"sizes\[0\]"):
            requests.build(self.folder)


if __name__ == "__main__":
    unittest.main()
