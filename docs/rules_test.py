"""docs/rules.md finds every rule: the functions, logs and tests that it names exist where it says."""

import pathlib
import re
import unittest

PAGE = pathlib.Path("docs/rules.md").read_text(encoding="utf-8")
LOGS, EXAMPLES = pathlib.Path("allocator/golden/testdata"), pathlib.Path("docs/examples")
FOLDERS = [pathlib.Path(folder) for folder in ("allocator", "trace", "workload")]
SECTIONS = [
    "Sizes",
    "Structures",
    "Statistics",
    "Allocation",
    "Free, record_stream, events",
    "Private pools",
    "Expandable segments",
    "Captures of CUDA graphs",
    "The cudaMallocAsync back end",
    "Settings",
    "History and snapshot",
    "Beyond PyTorch",
]
# A function's head, with its body behind it.
FUNCTION = r"^(?:[a-z][^\n;{{}}]*[ *])?\b{}\([^;{{}}]*\) \{{"


def rows():
    """(section, rule, where, held by) of each row of the tables."""
    found, section = [], ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.startswith("| rule "):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found.append((section, *cells))
    return found


def places(where):
    """(file, function) of "`a.c`: `f`, `g`; `b.c`: `h`"."""
    for part in where.split("; "):
        match = re.fullmatch(r"`([\w./]+)`: (`\w+`(?:, `\w+`)*)", part)
        if not match:
            raise AssertionError(f"not FILE: FUNCTION, ...: {part}")
        for name in match.group(2).split(", "):
            yield match.group(1), name.strip("`")


class Rules(unittest.TestCase):
    maxDiff = None

    def test_every_row_has_a_rule_a_place_and_what_holds_it(self):
        self.assertEqual(sorted({row[0] for row in rows()}), sorted(SECTIONS))
        self.assertGreater(len(rows()), 60)
        for row in rows():
            self.assertEqual(len(row), 4, row)
            self.assertTrue(all(row), row)

    def test_the_functions_are_where_the_page_says(self):
        missing = []
        for _, _, where, _ in rows():
            for file, name in places(where):
                path = pathlib.Path(file if "/" in file else f"allocator/{file}")
                if not re.search(FUNCTION.format(name), path.read_text(encoding="utf-8"), re.M):
                    missing.append(f"{name} in {path}")
        self.assertEqual(missing, [])

    def test_the_logs_and_tests_exist(self):
        files = [path for folder in FOLDERS for path in sorted(folder.glob("*_test.c"))]
        tests = "\n".join(path.read_text(encoding="utf-8") for path in files)
        self.assertGreater(len(tests), 10000)
        missing = []
        for _, _, _, held_by in rows():
            for name in re.findall(r"`([^`]+)`", held_by):
                is_test = re.search(rf"^(static )?void {name}\(", tests, re.M)
                others = [LOGS / f"{name}.log", EXAMPLES / f"{name}.c"]
                if name.endswith("_test"):
                    others += [folder / f"{name}.c" for folder in FOLDERS]
                if not is_test and not any(path.exists() for path in others):
                    missing.append(name)
        self.assertEqual(missing, [])

    def test_every_log_of_a_rule_holds_one_here(self):
        logs = sorted(path.stem for path in LOGS.glob("*.log"))
        self.assertGreater(len(logs), 100)
        rule_logs = [log for log in logs if re.match("(rule|sound|table)-", log)]
        self.assertEqual([log for log in rule_logs if f"`{log}`" not in PAGE], [])


if __name__ == "__main__":
    unittest.main()
