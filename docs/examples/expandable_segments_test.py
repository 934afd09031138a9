"""docs/expandable-segments.md shows what its example prints."""

import pathlib
import subprocess
import unittest

PROGRAM = "docs/examples/expandable_segments"
PAGE = pathlib.Path("docs/expandable-segments.md").read_text(encoding="utf-8")


class ExpandableSegments(unittest.TestCase):
    maxDiff = None

    def test_the_page_shows_what_the_example_prints(self):
        shown = "".join(line[4:] + "\n" for line in PAGE.splitlines() if line.startswith("    "))
        result = subprocess.run([PROGRAM], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(shown, result.stdout)


if __name__ == "__main__":
    unittest.main()
