"""The whole page of a made result folder: its numbers are those of the files, it is well-formed,
needs nothing from outside, and its figures are there.
"""

import html.parser
import os
import re
import tempfile
import unittest
import xml.etree.ElementTree

from reports import page, sample, style

SEED = 23
VOID = {"meta", "br", "hr", "img", "link", "input", "wbr"}


class Document(html.parser.HTMLParser):
    """Tables as rows of (text, exact value) by label, all attributes, and whether tags match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.ids, self.references = [], [], [], []
        self.tables, self.table, self.row, self.cell = {}, None, None, None
        self.words = []
        self.feed(text)
        self.close()
        self.faults += [f"<{name}> is not closed" for name in self.open]

    def handle_starttag(self, name, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.references += [attributes[key] for key in ("href", "src") if key in attributes]
        if "aria-label" in attributes and attributes.get("class") == "scroll":
            self.table = self.tables.setdefault(attributes["aria-label"], [])
        if name == "tr":
            self.row = []
            self.table.append(self.row)
        if name in ("td", "th"):
            self.cell = ["", attributes.get("data-value")]
            self.row.append(self.cell)
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.ids += [value for key, value in attributes if key == "id"]

    def handle_endtag(self, name):
        if not self.open or self.open.pop() != name:
            self.faults.append(f"</{name}> at {self.getpos()}")
        if name in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[0] += data
        elif not self.open or self.open[-1] != "style":
            self.words.append(data)


def build(folder, files, **options):
    sample.write(folder, files)
    paths = page.build(folder, quick=True, **options)
    with open(paths[0], encoding="utf-8") as file:
        text = file.read()
    return paths, text, Document(text)


class WholePage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.files = sample.make(SEED, traces=["alpha"])
        runs = cls.files["replay_memory.json"]["runs"]
        # One run out of memory, one stream known by its handle, one setting near its limit.
        runs[1]["out_of_memory"] = {"event": 399, "size_bytes": 123456, "message": "no memory"}
        runs[1]["segments"][3]["stream"] = runs[1]["streams"][1]["stream"] = 120946278055616
        cls.files["replay.json"]["benchmarks"][1].update(out_of_memory=1, out_of_memory_event=399)
        cls.paths, cls.text, cls.document = build(cls.holder.name, cls.files, note="A <note>.")

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def rows(self, label):
        """Name of the configuration -> its cells."""
        rows = self.document.tables[label][1:]
        return {row[0][0]: row[1:] for row in rows}

    def test_tags_match_and_names_are_unique(self):
        self.assertEqual(self.document.faults, [])
        self.assertEqual(len(self.document.ids), len(set(self.document.ids)))

    def test_the_page_needs_nothing_from_outside(self):
        self.assertNotRegex(self.text, r"https?:|//cdn|@import|<script|<link|url\((?!#)")
        for reference in self.document.references:
            if reference.startswith("#"):
                self.assertIn(reference[1:], self.document.ids)
            else:
                self.assertTrue(os.path.exists(os.path.join(self.holder.name, reference)))

    def test_it_is_made_for_phones_and_both_themes(self):
        self.assertIn('name="viewport"', self.text)
        self.assertIn("prefers-color-scheme:dark", self.text)

    def test_numbers_of_the_ranking_are_those_of_the_file(self):
        rows = self.rows("Ranking of configurations")
        for benchmark in self.files["replay.json"]["benchmarks"]:
            name = benchmark["name"].split("/")[2]
            cells = next(cells for text, cells in rows.items() if text.startswith(name))
            values = [None if value is None else float(value) for _, value in cells]
            peak, allocated = benchmark["peak_reserved_bytes"], benchmark["peak_allocated_bytes"]
            self.assertEqual(values[0], peak, f"seed {SEED}")
            self.assertEqual(cells[0][0], style.format_bytes(peak))
            self.assertAlmostEqual(values[2], peak / allocated)
            self.assertAlmostEqual(values[3], benchmark["fragmentation"])
            self.assertEqual(values[5], benchmark["retries"])
            self.assertEqual(values[6], benchmark["device_mallocs"] + benchmark["device_frees"])
            self.assertEqual(values[7], benchmark["ns_per_event"])
            self.assertEqual(cells[7][0], style.format_ns(benchmark["ns_per_event"]))
            self.assertEqual(values[8], benchmark["modelled_device_s"])
            self.assertIn(f"400{style.NBSP}µs to 9.10{style.NBSP}ms", cells[8][0])
        head = self.document.tables["Ranking of configurations"][0]
        self.assertEqual(head[9][0], "device time, modelled")
        self.assertEqual([text.split("x_")[0] for text in rows][1], "directlimit: no cache")
        self.assertIn("399", list(rows.values())[2][4][0])

    def test_numbers_of_host_costs_are_those_of_the_file(self):
        cells = [row[-10:] for row in self.document.tables["Host cost"][1:]]
        benchmarks = self.files["host_cost.json"]["benchmarks"]
        self.assertEqual(len(cells), len(benchmarks))
        mutex = {}
        for row, benchmark in zip(cells, benchmarks):
            _, subject, pattern, _ = benchmark["name"].split("/")
            if subject == "mutex_list":
                mutex[pattern] = benchmark["real_time"]
            self.assertEqual(float(row[-8][1]), benchmark["real_time"], f"seed {SEED}")
            for place, name in zip((-5, -4, -3, -2, -1), ("p50", "p90", "p99", "p999", "max")):
                self.assertEqual(float(row[place][1]), benchmark[f"{name}_ns"])
                self.assertEqual(row[place][0], style.format_ns(benchmark[f"{name}_ns"]))
            if subject in ("caching", "direct", "async"):
                self.assertAlmostEqual(float(row[-6][1]), benchmark["real_time"] / mutex[pattern])

    def test_numbers_of_two_threads_are_those_of_the_file(self):
        rows = self.document.tables["Host cost of two threads"][1:]
        for row, benchmark in zip(rows, self.files["host_cost_two_threads.json"]["benchmarks"]):
            values = [float(value) for _, value in row[-3:]]
            names = ("real_time", "x_mutex_list", "x_one_thread")
            self.assertEqual(values, [benchmark[name] for name in names])

    def test_numbers_of_replay_speed_are_those_of_the_file(self):
        rows = self.document.tables["Replay speed of made_1000000"][1:]
        benchmarks = {
            benchmark["label"]: benchmark
            for benchmark in self.files["replay_speed.json"]["benchmarks"]
        }
        self.assertEqual(len(rows), len(benchmarks))
        limits = {label: benchmark["ns_per_event"] for label, benchmark in benchmarks.items()}
        for row in rows:
            benchmark = next(one for label, one in benchmarks.items() if label in row[0][0])
            event_ns = benchmark["ns_per_event"]
            values = [float(value) for _, value in row[1:]]
            self.assertEqual(values[:2], [event_ns, benchmark["events_per_second"]], f"seed {SEED}")
            self.assertAlmostEqual(values[2], event_ns / limits["what ideal_list is"])
            self.assertAlmostEqual(values[3], event_ns / limits["what mutex_list is"])
        words = " ".join("".join(self.document.words).split())
        self.assertIn("A replay of 1 000 000 allocations and frees does", words)

    def test_numbers_of_programs_are_those_of_the_file(self):
        benchmarks = self.files["workloads.json"]["benchmarks"]
        rows = [
            row
            for program in ("training", "threads")
            for row in self.document.tables[f"{program} under settings"][1:]
        ]
        self.assertEqual(len(rows), len(benchmarks))
        for row, benchmark in zip(rows[:-1], benchmarks):
            self.assertTrue(row[0][0].startswith(benchmark["name"].split("/")[2]))
            peak, allocated = benchmark["peak_reserved_bytes"], benchmark["peak_allocated_bytes"]
            calls = benchmark["device_mallocs"] + benchmark["device_frees"]
            names = ("p50_ns", "p99_ns", "steps_per_second")
            expected = [benchmark[name] for name in names] + [peak, peak / allocated, calls]
            names = ("retries", "stall_ns", "wait_ns", "dry_ns", "first_stall_ns", "allocator_share")
            expected += [benchmark[name] for name in names]
            self.assertEqual([float(value) for _, value in row[1:]], expected, f"seed {SEED}")
            self.assertEqual(row[1][0], style.format_ns(benchmark["p50_ns"]))
            self.assertEqual(row[4][0], style.format_bytes(peak))
        self.assertEqual(rows[-1][1][0], "out of memory")
        words = " ".join("".join(self.document.words).split())
        step = style.format_ns(benchmarks[0]["real_time"]).replace(style.NBSP, " ")
        self.assertIn(f"training: a step takes {step} on average under default", words)
        self.assertIn("out of memory under direct.", words)

    def test_idle_cache_is_that_of_the_file_and_a_handle_is_counted(self):
        rows = self.rows("Idle cache per stream")
        self.assertEqual(float(rows["default"][0][1]), 33 << 20)
        self.assertEqual(float(rows["default"][1][1]), 30 << 20)
        self.assertIn("is 120946278055616", "".join(self.document.words))

    def test_self_check_note_and_context_are_told(self):
        words = " ".join("".join(self.document.words).split())
        self.assertIn("✓ equal to the recording", words)
        self.assertIn("9 of 9 block addresses", words)
        self.assertIn("A <note>.", words)
        for value in ("gcc 12.2.0", "0123456789ab", "1 package, 2 cores", "replay_memory.json"):
            self.assertIn(value, words)

    def test_every_figure_is_a_file_of_both_kinds_with_something_on_it(self):
        figures = [path for path in self.paths if path.endswith(".svg")]
        self.assertEqual(len(figures), 6)
        for path in figures:
            root = xml.etree.ElementTree.parse(path).getroot()
            shapes = sum(1 for item in root.iter() if item.tag.endswith("path"))
            texts = "".join(text for item in root.iter() for text in item.itertext())
            self.assertGreater(shapes, 3, path)
            self.assertGreater(len(texts), 40, path)
            with open(path[:-4] + ".png", "rb") as file:
                png = file.read()
            self.assertTrue(png.startswith(b"\x89PNG") and len(png) > 5000, path)
        self.assertEqual(len(re.findall("<svg ", self.text)), 6)
        left = [name for name in os.listdir(self.holder.name + "/figures") if "part" in name]
        self.assertEqual(left, [])

    def test_figures_name_their_source(self):
        for caption in re.findall("<figcaption>(.*?)</figcaption>", self.text, re.S):
            self.assertRegex(caption, r"Source: \w+\.json\.")


if __name__ == "__main__":
    unittest.main()
