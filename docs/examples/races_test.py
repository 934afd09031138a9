"""docs/races.md shows what its examples print and draw; its snippets are those of race_rules.c; its
options work.
"""

import json
import os
import pathlib
import re
import subprocess
import unittest
import xml.etree.ElementTree

REUSE, RULES, DRAW = "docs/examples/race_reuse", "docs/examples/race_rules", "reports/race"
PAGE = pathlib.Path("docs/races.md").read_text(encoding="utf-8")
FOLDER = pathlib.Path(os.environ["TEST_TMPDIR"])
IMAGE_BYTES_MAX = 60 * 1024


def run(*arguments, **variables):
    return subprocess.run(
        arguments, capture_output=True, text=True, env={**os.environ, **variables}, check=False
    )


def without_addresses(text):
    return re.sub(r"0x[0-9a-f]+", "0x...", text)


def indented_blocks(text):
    found, block = [], []
    for line in text.splitlines() + [""]:
        if line.startswith("    "):
            block.append(line[4:])
        elif block:
            found.append("\n".join(block))
            block = []
    return found


def words_of(svg):
    root = xml.etree.ElementTree.fromstring(svg)
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    return [without_addresses("".join(text.itertext())) for text in texts]


class Races(unittest.TestCase):
    maxDiff = None

    def test_the_page_shows_what_the_example_reports(self):
        shown = PAGE.split("<!-- output of race_reuse -->")[1].split("<!-- end of output -->")[0]
        result = run(REUSE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "as it is: 1 found\nwith record_stream: 0 found\n")
        self.assertEqual(
            without_addresses(indented_blocks(shown)[0] + "\n"), without_addresses(result.stderr)
        )

    def test_the_picture_of_the_page_is_that_of_the_example(self):
        reports, out = FOLDER / "races.jsonl", FOLDER / "races"
        self.assertEqual(run(REUSE, reports).returncode, 0)
        result = run(DRAW, reports, "--out", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue((out / "index.html").exists())
        committed = pathlib.Path("docs/images/race_reuse.svg").read_text(encoding="utf-8")
        self.assertEqual(
            words_of((out / "race-1.svg").read_text(encoding="utf-8")), words_of(committed)
        )
        self.assertLess(len(committed), IMAGE_BYTES_MAX)
        self.assertIn("](images/race_reuse.svg)", PAGE)

    def test_each_rule_has_an_example_that_breaks_it_and_no_other(self):
        header = pathlib.Path("simulator/sim_race.h").read_text(encoding="utf-8")
        rules = re.findall(r'^    X\(\w+, "([\w-]+)"', header, re.M)
        self.assertGreater(len(rules), 8)
        lines = [f"{rule.replace('-', '_')}: {rule}" for rule in rules]
        result = run(RULES)
        self.assertEqual(result.stdout.splitlines(), lines)
        section = PAGE.split("## The rules")[1].split("## What the checker is told")[0]
        self.assertEqual(re.findall(r"^\*\*([\w-]+)\*\*: ", section, re.M), rules)
        source = pathlib.Path("docs/examples/race_rules.c").read_text(encoding="utf-8")
        blocks = indented_blocks(section)
        self.assertEqual(len(blocks), len(rules))
        for rule, block in zip(rules, blocks):
            body = "".join(f"    {line}\n" for line in block.splitlines())
            self.assertIn(f"static void {rule.replace('-', '_')}(void) {{\n{body}}}\n", source)

    def test_the_options_of_the_page_work(self):
        file = FOLDER / "options.jsonl"
        example = "fail,rules=reuse+use-after-free,report="
        self.assertIn(f"TIDEMARK_SIM_RACES={example}races.jsonl", PAGE)
        result = run("docs/examples/race_rules", TIDEMARK_SIM_RACES=example + str(file))
        self.assertEqual(result.returncode, 0)  # the program has the last word
        result = run("docs/examples/race_rules", TIDEMARK_SIM_RACES="on,rules=reuse+nonsense")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn("nonsense", result.stderr)

    def test_the_page_has_all_keys_of_a_report(self):
        reports = FOLDER / "keys.jsonl"
        self.assertEqual(run(REUSE, reports).returncode, 0)
        head, report = reports.read_text(encoding="utf-8").splitlines()
        self.assertIn(head, PAGE)
        section = PAGE.split("## The file of reports")[1].split("## What it does not see")[0]

        def keys(value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    yield key
                    yield from keys(inner)
            elif isinstance(value, list):
                for inner in value:
                    yield from keys(inner)

        absent = [key for key in sorted(set(keys(json.loads(report)))) if f"`{key}`" not in section]
        self.assertEqual(absent, [])


if __name__ == "__main__":
    unittest.main()
