"""Pictures of races: what is in them, that nothing overlaps or is cut, that they come out the same
each time; the page; and one line for what cannot be read.
"""

import contextlib
import io
import json
import os
import tempfile
import unittest
import xml.etree.ElementTree

from reports import race, race_layout, race_picture, race_records, race_sample, style
from reports.page_test import Document
from reports.reader import ResultError

SVG = "{http://www.w3.org/2000/svg}"


def records(*made):
    with tempfile.TemporaryDirectory() as folder:
        path = race_sample.write(os.path.join(folder, "races.jsonl"), made)
        return race_records.load(path)


def plan(made):
    return race_layout.plan(records(made)[0], 100)


def svg_of(made):
    """The picture without its pixels, which take most of the time."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    canvas = race_picture.draw(records(made)[0])
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "race-1"}):
        FigureCanvasSVG(canvas.figure).print_svg(buffer, metadata={"Date": None})
    return buffer.getvalue()


def words_of(svg):
    root = xml.etree.ElementTree.fromstring(svg)
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


MADE = {
    "early_record": race_sample.early_record,
    "reuse": race_sample.reuse,
    "crowded": race_sample.crowded,
    "uninitialised": race_sample.uninitialised,
    "legacy": race_sample.legacy,
    "inside": race_sample.inside,
    "built": lambda number=1: race_sample.inside(number, captured=False),
}


class Layout(unittest.TestCase):
    def test_columns_do_not_overlap_and_are_wide_enough(self):
        for name, make in MADE.items():
            with self.subTest(name):
                end = 0
                for column in plan(make()).columns:
                    self.assertGreater(column.left, end)
                    end = column.left + column.width
                    for line in column.lines:
                        width = style.text_width(line, race_layout.SIZE_PT)
                        self.assertLessEqual(width, column.width)

    def test_the_record_that_a_wait_sees_has_an_arrow_to_it(self):
        edges = plan(race_sample.early_record()).edges
        self.assertEqual(
            [(start.entry.number, end.entry.number, kind) for start, end, kind in edges],
            [(2, 4, "wait")],
        )

    def test_a_wait_sees_the_last_record_before_it(self):
        made = race_sample.early_record()
        late = dict(made["log"][1], entry=6, sequence=4)
        made["log"].append(late)
        made["log"].insert(0, dict(made["log"][1], entry=0, sequence=0))
        edges = plan(made).edges
        self.assertEqual([(s.entry.number, e.entry.number) for s, e, _ in edges], [(2, 4)])

    def test_both_operations_are_marked(self):
        found = plan(race_sample.reuse())
        self.assertEqual(found.side("first").lines, ["all_gather"])
        self.assertEqual(found.side("second").lines, ["backward"])
        self.assertEqual([lane.name for lane in found.lanes], ["stream 3", "stream 7"])

    def test_a_block_is_a_bar_from_taking_to_giving_back(self):
        first, second = plan(race_sample.reuse()).bars
        self.assertEqual((first.start.entry.number, first.end.entry.number), (1, 5))
        self.assertEqual([words for _, words in first.uses], ["record_stream(8)"])
        self.assertEqual(second.start.entry.number, 6)
        self.assertIsNone(second.end)
        self.assertEqual(second.name, "block 2")

    def test_the_legacy_stream_has_edges_with_blocking_streams_only(self):
        edges = plan(race_sample.legacy()).edges
        self.assertEqual(
            [(start.entry.number, end.entry.number, kind) for start, end, kind in edges],
            [(1, 2, "legacy"), (2, 3, "legacy")],
        )

    def test_nodes_of_a_launch_have_their_edges(self):
        for captured, lanes in ((True, ["stream 3", "stream 5"]), (False, ["chain 1", "chain 2"])):
            found = plan(race_sample.inside(captured=captured))
            self.assertEqual([lane.name for lane in found.lanes], lanes)
            self.assertEqual(found.side("first").lines, ["fork", "node 2 of graph 6"])
            self.assertEqual(found.side("second").lines, ["main", "node 3 of graph 6"])
            names = [(start.lines[0], end.lines[0]) for start, end, _ in found.edges]
            self.assertEqual(
                names, [("start", "fork"), ("start", "main"), ("main", "end"), ("fork", "end")]
            )

    def test_what_is_left_out_is_counted(self):
        made = race_sample.crowded()
        found = plan(made)
        self.assertLessEqual(len(found.columns), race_layout.COLUMNS_MAX)
        shown = {column.entry.number for column in found.columns}
        self.assertIn(made["first"]["entry"], shown)
        self.assertIn(made["second"]["entry"], shown)
        last = found.columns[-1]
        between = [
            entry
            for entry in made["log"]
            if entry["stream"] == last.entry.stream and entry["kind"] == "operation"
        ]
        lane = [c for c in found.columns if c.lane is last.lane and c.is_box]
        hidden = sum(c.hidden for c in found.columns if c.lane is last.lane)
        self.assertEqual(len(between), len(lane) + hidden)

    def test_an_operation_that_the_log_has_not_has_a_box(self):
        found = plan(race_sample.uninitialised())
        self.assertEqual(found.side("second").lines, ["host read of 16 bytes"])
        self.assertEqual(found.side("second").lane.name, "host")
        self.assertIsNone(found.side("first"))

    def test_a_kernel_is_called_by_its_last_name(self):
        for what, expected in (
            (race_sample.LONG_KERNEL, "multi_tensor_apply_kernel"),
            ("kernel scale", "scale"),
            ("kernel a::b<c<d>, e>::run<int>(f)", "run"),
            ("copy of 8 bytes", "copy of 8 bytes"),
            ("kernel ", "kernel "),
        ):
            self.assertEqual(race_layout.short_name(what), expected)

    def test_a_site_is_the_place_alone(self):
        for site, expected in (
            ("a/b/train.c:31", "train.c:31"),
            ("upload (a/train.c:31), called by main (a/train.c:90)", "train.c:31"),
            ("/usr/lib/libx.so+0x12", "libx.so+0x12"),
            ("", ""),
        ):
            self.assertEqual(race_layout.short_site(site), expected)


class Picture(unittest.TestCase):
    def test_it_comes_out_the_same_each_time(self):
        for name, make in MADE.items():
            with self.subTest(name):
                self.assertEqual(svg_of(make()), svg_of(make()))
        drawn = [race_picture.draw(records(race_sample.reuse())[0]) for _ in range(2)]
        self.assertEqual(*(style.render(canvas, "race-1", quick=True) for canvas in drawn))

    def test_it_has_the_operations_their_places_the_memory_and_the_words(self):
        words = words_of(svg_of(race_sample.early_record()))
        for expected in ("scale", "train.c:35", "stream 7", "missing", "record", "wait"):
            self.assertIn(expected, words)
        whole = " ".join(words)
        self.assertIn("never waited for stream 5 behind the copy", whole)
        self.assertIn("make stream 7 wait for it", whole)
        self.assertIn("0x7f0000200000", whole)

    def test_dollar_signs_are_no_formula(self):
        made = race_sample.early_record()
        made["log"][0]["what"] = made["first"]["what"] = "kernel $add$"
        made["missing"] = "stream 7 never waited for $\\frac{$"
        words = words_of(svg_of(made))
        self.assertIn("$add$", words)
        self.assertIn(made["missing"], words)

    def test_control_characters_are_blanks(self):
        made = race_sample.early_record()
        made["log"][0]["what"] = made["first"]["what"] = "kernel a\tb\x01c\uffffd"
        self.assertIn("a b c d", words_of(svg_of(made)))

    def test_one_arrow_is_dashed_and_red(self):
        for make in (race_sample.early_record, race_sample.reuse, race_sample.crowded):
            dashed = [
                line
                for line in svg_of(make()).split("<path")
                if "stroke-dasharray" in line
                and style.color("alarm") in line
                and "fill: none" in line
            ]
            self.assertEqual(len(dashed), 1)

    def test_nothing_stands_outside(self):
        for name, make in MADE.items():
            with self.subTest(name):
                picture = race_picture.Picture(records(make())[0])
                picture.draw()
                from matplotlib.backends.backend_agg import FigureCanvasAgg

                renderer = FigureCanvasAgg(picture.canvas.figure).get_renderer()
                box = picture.canvas.figure.bbox
                for text in picture.axes.texts:
                    place = text.get_window_extent(renderer)
                    self.assertGreaterEqual(place.x0, box.x0 - 1, text.get_text())
                    self.assertLessEqual(place.x1, box.x1 + 1, text.get_text())
                    self.assertGreaterEqual(place.y0, box.y0 - 1, text.get_text())
                    self.assertLessEqual(place.y1, box.y1 + 1, text.get_text())


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_on(self, text):
        with open(self.path("races.jsonl"), "w", encoding="utf-8") as file:
            file.write(text)
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            status = race.main([self.path("races.jsonl"), "--out", self.path("out")])
        return status, errors.getvalue()

    def test_it_lists_the_reports_with_their_pictures(self):
        made = [make(i) for i, make in enumerate(MADE.values(), 1)]
        race_sample.write(self.path("races.jsonl"), made)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = race.main([self.path("races.jsonl"), "--out", self.path("out")])
        self.assertEqual(status, 0)
        self.assertEqual(output.getvalue().strip(), self.path("out/index.html"))
        expected = {f"race-{i}.{ending}" for i in range(1, 8) for ending in ("png", "svg")}
        self.assertEqual(set(os.listdir(self.path("out"))), expected | {"index.html"})
        with open(self.path("out/index.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertEqual(page.count("<svg "), 7)
        for i in range(1, 8):
            self.assertIn(f'id="race-{i}"', page)
            self.assertIn(f'href="race-{i}.svg"', page)
        document = Document(page)
        self.assertEqual(document.faults, [])
        self.assertEqual(sorted(set(document.ids)), sorted(document.ids))
        for target in document.references:
            if target.startswith("#"):
                self.assertIn(target[1:], document.ids)
            else:
                self.assertTrue(os.path.exists(self.path(f"out/{target}")), target)
        self.assertEqual(len(document.tables["Races"]), 1 + len(made))
        self.assertNotIn("http://", page.replace("http://www.w3.org", ""))

    def test_no_race_is_said(self):
        status, errors = self.run_on(json.dumps(race_sample.HEAD) + "\n")
        self.assertEqual((status, errors), (0, ""))
        with open(self.path("out/index.html"), encoding="utf-8") as file:
            self.assertIn("found no race", file.read())

    def test_bad_input_is_one_line_and_exit_2(self):
        head = json.dumps(race_sample.HEAD)
        good = json.dumps(race_sample.early_record())
        nobody = race_sample.early_record() | {"first": None, "second": None}
        mode = race_sample.early_record()
        mode["first"]["mode"] = "eats"
        digits = good.replace('"size": ', '"size": ' + 400 * "1", 1)
        kind = race_sample.early_record()
        kind["log"][0]["kind"] = "sings"
        order = race_sample.early_record()
        order["log"].reverse()
        for text, expected in (
            ("", "is empty"),
            ("no json\n", ":1: "),
            ("[]\n", "a list"),
            ('{"schema":"tidemark-races-9"}\n', "tidemark-races-9"),
            (f"{head}\n{good[:-20]}\n", ":2: "),
            (f"{head}\n{good}\n{{}}\n", 'line 3: "number" is missing'),
            (f"{head}\n{json.dumps(nobody)}\n", "no operation"),
            (f"{head}\n{json.dumps(mode)}\n", "eats"),
            (f"{head}\n{digits}\n", "too many digits"),
            (5000 * "1" + "\n", "too many digits"),
            (f"{head}\n{good}\n".replace('"what": "', '"what": "\\ud800', 1), "ud800"),
            (f"{head}\n{json.dumps(kind)}\n", "sings"),
            (f"{head}\n{json.dumps(order)}\n", "not in order"),
        ):
            with self.subTest(expected):
                status, errors = self.run_on(text)
                self.assertEqual(status, 2, errors)
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertIn(expected, errors)
                self.assertIn("expected", errors)
                self.assertFalse(os.path.exists(self.path("out/index.html")))

    def test_a_file_that_is_not_there_and_a_folder_that_cannot_be(self):
        with self.assertRaises(ResultError):
            race_records.load(self.path("nothing.jsonl"))
        race_sample.write(self.path("races.jsonl"), [])
        with open(self.path("file"), "w", encoding="utf-8"):
            pass
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            status = race.main([self.path("races.jsonl"), "--out", self.path("file")])
        self.assertEqual(status, 2)
        self.assertEqual(errors.getvalue().count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
