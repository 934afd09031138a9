"""docs/simulator.md shows what its example of a graph prints, and a picture that is made like this one."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

PROGRAM = "docs/examples/graph_picture"
PAGE = pathlib.Path("docs/simulator.md").read_text(encoding="utf-8")
IMAGE = pathlib.Path("docs/images/graph_picture.svg").read_text(encoding="utf-8")
DOT = pathlib.Path(os.environ["TEST_TMPDIR"]) / "step.dot"
IMAGE_BYTES_MAX = 60 * 1024


class GraphPicture(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.result = subprocess.run([PROGRAM, DOT], capture_output=True, text=True, check=False)
        cls.dot = DOT.read_text(encoding="utf-8")

    def test_the_page_shows_what_the_example_prints(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        shown = PAGE.split("<!-- output of graph_picture -->")[1].split("<!-- end of output -->")[0]
        lines = [line[4:] + "\n" for line in shown.splitlines() if line.startswith("    ")]
        self.assertEqual("".join(lines), self.result.stdout)

    def test_boxes_say_what_nodes_do_and_to_which_blocks(self):
        titles = re.findall(r"<b>([^<]*)</b></td></tr>", self.dot)
        self.assertEqual(
            [title for title in titles if not title.startswith("graph")],
            ["host function batch_fill", "4 KiB to the device", "layer 1", "allocate 4 KiB", "reduce",
             "4 KiB to the host", "free 4 KiB", "layer 2", "4 KiB of 0x0"])
        for block in ("input", "layer", "output"):
            self.assertRegex(self.dot, rf"4 KiB, block \d+ {block}<")
        self.assertRegex(self.dot, r">docs/examples/graph_picture\.c:\d+<")

    def test_the_picture_of_the_page_is_of_this_graph(self):
        self.assertIn("](images/graph_picture.svg)", PAGE)
        self.assertLess(len(IMAGE), IMAGE_BYTES_MAX)
        for title in ("batch_fill", "layer 1", "layer 2", "reduce", "allocate 4 KiB"):
            self.assertIn(title, IMAGE.replace("&#160;", " "))
        self.assertEqual(IMAGE.count('class="node"'), self.dot.count(" [fillcolor="))
        self.assertEqual(IMAGE.count('class="edge"'), self.dot.count(" -> "))

    @unittest.skipUnless(shutil.which("dot"), "Graphviz is not installed")
    def test_graphviz_draws_it(self):
        drawn = subprocess.run(["dot", "-Tsvg", DOT], capture_output=True, text=True, check=True)
        self.assertEqual(drawn.stderr, "")
        self.assertEqual(drawn.stdout.count('class="node"'), IMAGE.count('class="node"'))


if __name__ == "__main__":
    unittest.main()
