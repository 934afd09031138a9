"""docs/simulator.md shows what its example prints; the timeline it writes can be drawn; its fault plan loads."""

import json
import os
import pathlib
import re
import subprocess
import unittest

PROGRAM = "docs/examples/simulator_order"
PAGE = pathlib.Path("docs/simulator.md").read_text(encoding="utf-8")
FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"])
IMAGE_BYTES_MAX = 200 * 1024


def run(*arguments, **variables):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                          env={**os.environ, **variables}, check=False)


def indented_block(text):
    return "".join(line[4:] + "\n" for line in text.splitlines() if line.startswith("    "))


class SimulatorOrder(unittest.TestCase):
    maxDiff = None

    def test_the_page_shows_what_the_example_prints(self):
        shown = PAGE.split("<!-- output of simulator_order -->")[1].split("<!-- end of output -->")[0]
        result = run()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(indented_block(shown), result.stdout)

    def test_the_timeline_can_be_drawn(self):
        timeline, picture = FOLDER / "timeline.json", FOLDER / "timeline.png"
        self.assertEqual(run(str(timeline)).returncode, 0)
        events = json.loads(timeline.read_text(encoding="utf-8"))["traceEvents"]
        kernels = [event for event in events if event["name"] == "kernel work"]
        self.assertEqual(len(kernels), 4)
        subprocess.run(["docs/examples/timeline", timeline, picture], check=True)
        self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_the_picture_of_the_page_is_small(self):
        size = pathlib.Path("docs/images/simulator_order.png").stat().st_size
        self.assertLess(size, IMAGE_BYTES_MAX)
        self.assertIn("](images/simulator_order.png)", PAGE)

    def test_the_fault_plan_of_the_page_loads(self):
        plan = FOLDER / "page.plan"
        shown = PAGE.split("starts a comment:")[1].split("TIDEMARK_SIM_FAULTS")[0]
        rules = indented_block(shown).split("\n")[1:6]
        plan.write_text("\n".join(rules))
        self.assertTrue(all(rules))
        result = run(TIDEMARK_SIM_FAULTS=str(plan))  # none strikes: there is no fifth allocation
        self.assertEqual(result.returncode, 0, result.stderr)
        plan.write_text("cudaMalloc at 2 error cudaErrorMemoryAllocation\n")
        result = run(TIDEMARK_SIM_FAULTS=str(plan))
        self.assertIn("cudaMalloc", result.stderr)
        self.assertIn("left is 2", result.stderr)
        plan.write_text("\ncudaMalloc sometimes error 2\n")
        result = run(TIDEMARK_SIM_FAULTS=str(plan))
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"{plan}:2: ", result.stderr)

    def test_the_page_has_all_variables(self):
        header = pathlib.Path("simulator/sim.h").read_text(encoding="utf-8")
        variables = set(re.findall(r"TIDEMARK_SIM_\w+", header))
        self.assertGreater(len(variables), 8)
        self.assertEqual([name for name in sorted(variables) if name not in PAGE], [])


if __name__ == "__main__":
    unittest.main()
