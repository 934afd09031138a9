"""The picture of a race: a lane for each stream and host thread, what they did in the order of
submission, the edges that there are, and the one that is missing.
"""

import re

from reports import race_layout, style

LABEL_WIDTH_PT = 96
LANE_PT, BAR_PT = 62, 34
HEAD_PT, FOOT_LINE_PT = 46, 12
WIDTH_MIN_PT = 470
SIZE_PT, SMALL_PT = race_layout.SIZE_PT, race_layout.SMALL_PT
MISSING_DASHES = (4, 2.5)
MISSING_ROOM_PT = 90  # an arrow that goes this far has room for its word
CONTROLS = re.compile(r"[\x00-\x1f\x7f\ufffe\uffff]")
BENDS = (0, 0.1, -0.1, 0.2, -0.2, 0.3, -0.3)


class Picture:
    def __init__(self, race):
        self.plan = race_layout.plan(race, LABEL_WIDTH_PT + style.MARGIN_PT)
        self.race = race
        self.width = max(self.plan.width, WIDTH_MIN_PT) + style.MARGIN_PT
        self.foot = self.foot_lines()
        self.lanes_bottom = HEAD_PT + LANE_PT * len(self.plan.lanes)
        self.bars_bottom = self.lanes_bottom + BAR_PT * len(self.plan.bars)
        height = self.bars_bottom + 12 + FOOT_LINE_PT * len(self.foot) + 8
        self.canvas = style.Canvas(height, self.width)
        self.axes = self.canvas.figure.add_axes([0, 0, 1, 1])
        self.axes.set_xlim(0, self.width)
        self.axes.set_ylim(height, 0)
        self.axes.axis("off")
        self.tops = {
            id(lane): HEAD_PT + LANE_PT * i + LANE_PT / 2 for i, lane in enumerate(self.plan.lanes)
        }
        # The words of a mark stand on the side that its arrow is not on.
        self.above = set()
        for start, end, _ in self.plan.edges:
            down = self.tops[id(end.lane)] > self.tops[id(start.lane)]
            self.above.add(id(start if down else end))

    # ----------------------------------------------------------------------------------------------

    def text(self, x, y, text, size=SIZE_PT, name="ink", **keywords):
        keywords = {"ha": "left", "va": "center", "parse_math": False} | keywords
        text = CONTROLS.sub(" ", text)  # SVG can have none
        self.axes.text(x, y, text, fontsize=size, color=style.color(name), **keywords)

    def line(self, x, y, name="grid", width=0.8, **keywords):
        self.axes.plot(x, y, color=style.color(name), linewidth=width, **keywords)

    def rectangle(self, left, top, width, height, edge, face, **keywords):
        from matplotlib.patches import FancyBboxPatch

        self.axes.add_patch(
            FancyBboxPatch(
                (left, top),
                width,
                height,
                boxstyle="round,pad=0,rounding_size=3",
                edgecolor=style.color(edge),
                facecolor=style.color(face),
                **keywords,
            )
        )

    def arrow(self, start, end, name, bend=0.0, **keywords):
        from matplotlib.patches import FancyArrowPatch

        self.axes.add_patch(
            FancyArrowPatch(
                start,
                end,
                connectionstyle=f"arc3,rad={bend}",
                color=style.color(name),
                shrinkA=1,
                shrinkB=2,
                **({"arrowstyle": "-|>", "mutation_scale": 8, "linewidth": 1.0} | keywords),
            )
        )

    # ----------------------------------------------------------------------------------------------

    def foot_lines(self):
        width = 0.95 * (self.width - 2 * style.MARGIN_PT - 44)  # widths are guessed
        lines = []
        for head, words, name in (
            ("missing", self.race.missing, "alarm"),
            ("mend", self.race.mend, "good"),
        ):
            for i, line in enumerate(wrapped(words, SIZE_PT, width)):
                lines.append((head if i == 0 else "", line, name))
        return lines

    def draw_head(self):
        left, width = style.MARGIN_PT, self.width - 2 * style.MARGIN_PT
        size = style.FONT_PT + 1.5
        sides = [side for side in (self.race.first, self.race.second) if side]
        names = " and ".join(race_layout.short_name(side.what) for side in sides)
        title = style.shorten(f"{self.race.rule}: {names}", size * race_layout.BOLD, width)
        self.text(left, 14, title, size, weight="bold")
        self.text(left, 30, style.shorten(memory_words(self.race), SIZE_PT, width), name="muted")

    def draw_lanes(self):
        right = self.width - style.MARGIN_PT
        for lane in self.plan.lanes:
            top = self.tops[id(lane)]
            self.line([LABEL_WIDTH_PT, right], [top, top])
            self.text(style.MARGIN_PT, top - (4 if lane.note else 0), lane.name, weight="bold")
            note = style.shorten(lane.note, SMALL_PT, LABEL_WIDTH_PT - 12)
            self.text(style.MARGIN_PT, top + 7, note, SMALL_PT, "muted")

    def draw_column(self, column):
        top = self.tops[id(column.lane)]
        if column.hidden:
            x = column.left - 17
            self.rectangle(x - 9, top - 6, 18, 12, "plate", "plate")
            self.text(x, top, f"+{column.hidden}", SMALL_PT, "muted", ha="center")
        if column.is_box:
            self.draw_box(column, top)
        else:
            self.draw_mark(column, top)

    def draw_box(self, column, top):
        height = 11 * len(column.lines) + (9 if column.site else 0) + 6
        edge = "alarm" if column.side else "muted"
        self.rectangle(
            column.left,
            top - height / 2,
            column.width,
            height,
            edge,
            "raised",
            linewidth=2.0 if column.side else 0.8,
            zorder=3,
        )
        y = top - height / 2 + 8.5
        for i, line in enumerate(column.lines):
            self.text(
                column.middle,
                y + 11 * i,
                line,
                ha="center",
                weight="bold" if column.side and not line.startswith("node ") else "normal",
                zorder=4,
            )
        if column.site:
            y += 11 * len(column.lines) - 1
            self.text(column.middle, y, column.site, SMALL_PT, "muted", ha="center", zorder=4)

    def draw_mark(self, column, top):
        waits = column.lines == ["wait"]
        self.axes.plot(
            [column.middle],
            [top],
            marker="o",
            markersize=5,
            markeredgecolor=style.color("ink"),
            markerfacecolor=style.color("plate" if waits else "ink"),
            zorder=3,
        )
        y = top - 18 if id(column) in self.above else top + 10
        self.text(column.middle, y, column.lines[0], SMALL_PT, "ink", ha="center", zorder=4)
        self.text(column.middle, y + 8, column.site, SMALL_PT, "muted", ha="center", zorder=4)

    def ends(self, start, end):
        """Where an arrow between two columns leaves and arrives."""
        from_top, to_top = self.tops[id(start.lane)], self.tops[id(end.lane)]
        down = to_top > from_top
        x = start.left + start.width if start.is_box and end.left > start.middle else start.middle
        y = from_top
        if start.is_box:
            x = min(x, start.left + 0.75 * start.width)
            y += self.half_height(start) * (1 if down else -1)
        arrive_x = end.left + 0.25 * end.width if end.is_box else end.middle
        arrive_y = to_top - (self.half_height(end) if end.is_box else 3) * (1 if down else -1)
        return (x, y), (arrive_x, arrive_y)

    @staticmethod
    def half_height(column):
        return (11 * len(column.lines) + (9 if column.site else 0) + 6) / 2

    def draw_edges(self):
        for start, end, kind in self.plan.edges:
            if start.lane is end.lane:
                if kind == "edge":  # of a graph
                    top = self.tops[id(start.lane)]
                    self.arrow((start.left + start.width, top), (end.left, top), "ink", zorder=2)
                continue
            line = {"linestyle": (0, (1, 1.5))} if kind == "legacy" else {}
            self.arrow(*self.ends(start, end), "ink", zorder=2, **line)

    def draw_missing(self):
        first, second = self.plan.side("first"), self.plan.side("second")
        if first is None or second is None or first.lane is None or second.lane is None:
            return
        if first.lane is second.lane:
            start = (first.left + first.width, self.tops[id(first.lane)])
            end = (second.left, self.tops[id(second.lane)])
        else:
            start, end = self.ends(first, second)
        bend = min(BENDS, key=lambda bend: (self.hits(start, end, bend), abs(bend)))
        self.arrow(
            start,
            end,
            "alarm",
            bend,
            linestyle=(0, MISSING_DASHES),
            linewidth=1.8,
            zorder=5,
            mutation_scale=11,
        )
        share = max((0.3, 0.4, 0.5, 0.6, 0.7), key=lambda t: self.room(start, end, bend, t))
        x, y = point_of(start, end, bend, share)
        if abs(end[0] - start[0]) < MISSING_ROOM_PT:  # beside the arrow
            x += 10 + style.text_width("missing", SIZE_PT) / 2
            x += abs(end[0] - start[0]) / 4
        box = {"facecolor": style.color("plate"), "edgecolor": "none", "pad": 1.5}
        self.text(x, y, "missing", name="alarm", ha="center", weight="bold", zorder=6, bbox=box)

    def others(self):
        """Columns in lanes that are not of the two operations."""
        return [c for c in self.plan.columns if c.lane is not None and not c.side]

    def hits(self, start, end, bend):
        """How many points of an arrow lie on boxes and marks."""
        points = [point_of(start, end, bend, i / 40) for i in range(41)]
        return sum(
            abs(x - column.middle) < column.width / 2 + 2
            and abs(y - self.tops[id(column.lane)]) < self.half_height(column) + 2
            for x, y in points
            for column in self.others()
        ) + sum(not HEAD_PT - 4 < y < self.lanes_bottom for _, y in points)

    def room(self, start, end, bend, share):
        """How far a point of an arrow is from boxes and marks; the middle is the better one."""
        x, y = point_of(start, end, bend, share)
        distances = [
            max(abs(y - self.tops[id(column.lane)]) / 16, abs(x - column.middle) / column.width)
            for column in self.others()
        ]
        return min(distances + [2]), -abs(share - 0.5)

    def draw_bars(self):
        for i, bar in enumerate(self.plan.bars):
            top = self.lanes_bottom + BAR_PT * i + BAR_PT / 2
            self.draw_bar(bar, top)

    def draw_bar(self, bar, top):
        left = bar.start.middle if bar.start else LABEL_WIDTH_PT
        right = bar.end.middle if bar.end else self.width - style.MARGIN_PT
        name = style.shorten(bar.name, SIZE_PT, LABEL_WIDTH_PT - 12)
        size = f"{style.format_bytes(bar.block.size, chosen=True)}, stream {bar.block.stream}"
        self.text(style.MARGIN_PT, top - 4, name, weight="bold")
        self.text(style.MARGIN_PT, top + 6, size, SMALL_PT, "muted")
        self.line([left, right], [top - 5, top - 5], "allocated", 4.5, solid_capstyle="butt")
        for column, words in [(bar.start, "taken"), (bar.end, "given back"), *bar.uses]:
            if column:
                self.line([column.middle] * 2, [top - 9, top - 1], "ink", 1.2)
                self.text(column.middle, top + 4, words, SMALL_PT, ha="center")
                self.text(column.middle, top + 12, column.site, SMALL_PT, "muted", ha="center")

    def draw_foot(self):
        top = self.bars_bottom + 14
        for i, (head, words, name) in enumerate(self.foot):
            y = top + FOOT_LINE_PT * i
            self.text(style.MARGIN_PT, y, head, name=name, weight="bold")
            self.text(style.MARGIN_PT + 44, y, words)

    def draw(self):
        self.draw_head()
        self.draw_lanes()
        self.draw_edges()
        for column in self.plan.columns:
            if column.lane is not None:
                self.draw_column(column)
        self.draw_missing()
        self.draw_bars()
        self.draw_foot()
        return self.canvas


def point_of(start, end, bend, share):
    """A point of a bent arrow, as matplotlib's arc3 bends it; y grows downwards here."""
    across, down = end[0] - start[0], end[1] - start[1]
    middle = ((start[0] + end[0]) / 2 - bend * down, (start[1] + end[1]) / 2 + bend * across)
    return tuple(
        (1 - share) ** 2 * start[i] + 2 * share * (1 - share) * middle[i] + share**2 * end[i]
        for i in (0, 1)
    )


def memory_words(race):
    """Which bytes, of what."""
    size = style.format_bytes(race.size, chosen=True)
    if race.allocation is None:
        return f"{size} at {race.start:#x}"
    first = race.start - race.allocation_start
    whole = style.format_bytes(race.allocation_size, chosen=True)
    words = f"{size}, from byte {first} of the {whole} at {race.allocation_start:#x}"
    if race.allocation.what:
        words += f", {race.allocation.what}"
    if race.allocation.site:
        words += f" at {race_layout.short_site(race.allocation.site)}"
    return words


def wrapped(text, size, width):
    lines, line = [], ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and style.text_width(longer, size) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return lines + [line] if line else lines


def draw(race):
    """The canvas of a race."""
    return Picture(race).draw()
