"""docs/images/training.svg is what the page's commands draw."""

import os
import pathlib
import subprocess
import unittest

import svg_compare

FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"])
RECORDING = "trace/bundled/gpt2_bf16__default.tmt"


class Picture(unittest.TestCase):
    def test_the_picture_of_the_page_is_drawn_by_its_commands(self):
        run = FOLDER / "gpt2.tmt"
        environment = os.environ | {"TIDEMARK_SIM_PROFILE": "h200"}
        environment.pop("BUILD_WORKING_DIRECTORY", None)
        subprocess.run(
            ["workload/run", "transformer", "--size", "true", "--numerics-off", "--record", run],
            check=True, capture_output=True, env=environment,
        )
        result = subprocess.run(
            ["workload/compare", run, RECORDING, "--out", FOLDER / "pictures"],
            capture_output=True, text=True, env=environment, check=False,
        )
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        words = svg_compare.check_same(
            self, "docs/images/training.svg", FOLDER / "pictures" / "requests.svg"
        )
        self.assertIn("gpt2 beside gpt2_bf16__default", words)


if __name__ == "__main__":
    unittest.main()
