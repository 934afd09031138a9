"""What PyTorch did under other settings comes out of the bundled default recordings; a wrong figure is told."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
BUNDLED = pathlib.Path("trace/bundled")
FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"])


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)


class WhatIf(unittest.TestCase):
    def test_every_cell_is_exact(self):
        result = run("--expect-exact", 79, BUNDLED)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], "exact: 79 of 79 cells")

    def change(self, workload, setting, figure, by):
        folder = FOLDER / "changed"
        folder.mkdir(exist_ok=True)
        matrix = json.loads((BUNDLED / "matrix.json").read_text(encoding="utf-8"))
        matrix[workload][setting][figure] += by
        (folder / "matrix.json").write_text(json.dumps({workload: matrix[workload]}), encoding="utf-8")
        shutil.copy(BUNDLED / f"{workload}__default.tmt", folder)
        return run(folder)

    def test_a_figure_that_differs_is_named(self):
        for figure in ("peak_reserved", "peak_active", "peak_allocated", "peak_requested", "final_reserved",
                       "peak_segments", "final_segments", "num_device_alloc", "num_device_free",
                       "num_alloc_retries", "num_ooms"):
            result = self.change("mlp", "exptight", figure, 1)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"mlp exptight: {figure} is ", result.stdout)
            self.assertIn("exact: 10 of 11 cells", result.stdout)

    def test_a_folder_without_a_matrix_is_refused(self):
        empty = FOLDER / "empty"
        empty.mkdir(exist_ok=True)
        result = run(empty)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("matrix.json", result.stderr)

    def test_a_matrix_without_a_cell_is_refused(self):
        folder = FOLDER / "none"
        folder.mkdir(exist_ok=True)
        for text in ("{}", "[]", "[{}]"):
            (folder / "matrix.json").write_text(text, encoding="utf-8")
            result = run(folder)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertRegex(result.stderr, "^whatif: .*matrix.json: names no program")


if __name__ == "__main__":
    unittest.main()
