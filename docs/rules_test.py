"""docs/rules.md finds every rule: the functions, logs and tests that it names exist where it says."""

import pathlib
import re
import unittest

PAGE = pathlib.Path("docs/rules.md").read_text(encoding="utf-8")
SOURCE, LOGS = pathlib.Path("allocator"), pathlib.Path("allocator/golden/testdata")
EXAMPLES = pathlib.Path("docs/examples")
SECTIONS = [
    "Sizes",
    "Structures",
    "Statistics",
    "Allocation",
    "Free, record_stream, events",
    "Expandable segments",
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
                text = (SOURCE / file).read_text(encoding="utf-8")
                if not re.search(FUNCTION.format(name), text, re.M):
                    missing.append(f"{name} in allocator/{file}")
        self.assertEqual(missing, [])

    def test_the_logs_and_tests_exist(self):
        tests = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.glob("*_test.c"))
        self.assertGreater(len(tests), 10000)
        missing = []
        for _, _, _, held_by in rows():
            for name in re.findall(r"`([^`]+)`", held_by):
                is_test = re.search(rf"^(static )?void {name}\(void\)", tests, re.M)
                files = LOGS / f"{name}.log", EXAMPLES / f"{name}.c"
                if not is_test and not any(file.exists() for file in files):
                    missing.append(name)
        self.assertEqual(missing, [])

    def test_every_log_of_a_rule_holds_one_here(self):
        logs = sorted(path.stem for path in LOGS.glob("*.log"))
        self.assertGreater(len(logs), 100)
        rule_logs = [log for log in logs if re.match("(rule|sound|table)-", log)]
        self.assertEqual([log for log in rule_logs if f"`{log}`" not in PAGE], [])


if __name__ == "__main__":
    unittest.main()
