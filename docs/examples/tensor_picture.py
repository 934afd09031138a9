"""Draws the picture of docs/tensor.md from what its program found at a few moments.

    tensor_picture.py MOMENTS.csv PICTURE.svg [PICTURE.png]

MOMENTS.csv is the output of `tensor_moments`.
"""

import csv
import pathlib
import sys

import style

WIDTH_PT = 500
HANDLE_X, HANDLE_PT, HANDLE_STEP = 8, (34, 14), 16
IMPL_X, IMPL_PT, IMPL_STEP = 74, (148, 28), 40
STORAGE_X, STORAGE_PT = 262, (80, 28)
SEGMENT_X, SEGMENT_PT, SEGMENT_DOWN = 376, (88, 14), 14
HEAD_PT, GAP_PT, TEXT_PT = 16, 12, 7.5


class Moment:
    def __init__(self, line):
        self.line = line
        self.segments, self.blocks, self.storages = [], [], []
        self.impls, self.versions, self.handles = [], [], []

    def height(self):
        rows = max(len(self.impls), 1 + len(self.versions) / 2)
        return HEAD_PT + rows * IMPL_STEP + GAP_PT


class Impl:
    def __init__(self, words):
        self.sizes, self.strides = words[:2]
        self.offset, self.strong, self.storage, self.version, self.base = map(int, words[2:7])
        self.first, self.end = map(int, words[7:])


def read(path):
    moments = []
    with open(path, encoding="utf-8", newline="") as file:
        for kind, *words in csv.reader(file):
            if kind == "moment":
                moments.append(Moment(words[0]))
            elif kind == "segment":
                moments[-1].segments.append(int(words[1]))
            elif kind == "block":
                moments[-1].blocks.append((int(words[1]), int(words[2]), words[3]))
            elif kind == "handle":
                moments[-1].handles.append((words[0], int(words[1])))
            elif kind == "impl":
                moments[-1].impls.append(Impl(words[1:]))
            elif kind == "storage":
                size, strong, _, first = map(int, words[1:])
                moments[-1].storages.append((size, strong, first))
            elif kind == "version":
                moments[-1].versions.append(int(words[1]))
            else:
                raise ValueError(f"{path}: no line begins with {kind}")
    for moment in moments:
        if len(moment.segments) != 1 or len(moment.storages) != 1:
            raise ValueError(f"{moment.line}: there is room for one storage in one segment")
    return moments


class Panel:
    """One moment; `top` is where its boxes begin."""

    def __init__(self, canvas, axes, moment, top):
        self.canvas, self.axes, self.moment, self.top = canvas, axes, moment, top

    def box(self, x, y, size, lines, fill="plate", edge="limit"):
        from matplotlib.patches import FancyBboxPatch

        self.axes.add_patch(
            FancyBboxPatch(
                (x + 2, y + 2),
                size[0] - 4,
                size[1] - 4,
                boxstyle="round,pad=2",
                facecolor=style.color(fill),
                edgecolor=style.color(edge),
                linewidth=0.8,
            )
        )
        for index, line in enumerate(lines):
            below = size[1] / 2 + (index - (len(lines) - 1) / 2) * 10 + 2.8
            self.canvas.text(x + 6, y + below, line, TEXT_PT)

    def arrow(self, start, end, name="ink", line="-", way="arc3"):
        from matplotlib.patches import FancyArrowPatch

        self.axes.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle="-|>",
                mutation_scale=6,
                shrinkA=0,
                shrinkB=0,
                linewidth=0.8,
                linestyle=line,
                connectionstyle=way,
                color=style.color(name),
            )
        )

    def impl_y(self, number):
        return self.top + number * IMPL_STEP

    def handles(self):
        for number, _ in enumerate(self.moment.impls):
            names = [name for name, impl in self.moment.handles if impl == number]
            middle = self.impl_y(number) + IMPL_PT[1] / 2
            for index, name in enumerate(names):
                y = middle + (index - (len(names) - 1) / 2) * HANDLE_STEP - HANDLE_PT[1] / 2
                self.box(HANDLE_X, y, HANDLE_PT, [name], fill="raised")
                self.arrow(
                    (HANDLE_X + HANDLE_PT[0], y + HANDLE_PT[1] / 2),
                    (IMPL_X, middle + (index - (len(names) - 1) / 2) * 6),
                )

    def impls(self):
        for number, impl in enumerate(self.moment.impls):
            y = self.impl_y(number)
            words = [
                f"{impl.sizes}, strides {impl.strides}",
                f"offset {impl.offset}, strong {impl.strong}",
            ]
            self.box(IMPL_X, y, IMPL_PT, words)
            if impl.base >= 0:
                self.base(number, impl.base)

    def base(self, number, base):
        if abs(number - base) != 1:
            raise ValueError(f"{self.moment.line}: a base is drawn beside its view only")
        x, down = IMPL_X + 24, base > number
        start = self.impl_y(number) + (IMPL_PT[1] if down else 0)
        end = self.impl_y(base) + (0 if down else IMPL_PT[1])
        self.arrow((x, start), (x, end))
        self.canvas.text(
            x + 5, (start + end) / 2 + 2.5, "base", 7, color=style.color("muted")
        )

    def storage(self):
        size, strong, first = self.moment.storages[0]
        y, middle = self.top, self.top + STORAGE_PT[1] / 2
        words = [f"storage, strong {strong}", style.format_bytes(size, chosen=True)]
        self.box(STORAGE_X, y, STORAGE_PT, words)
        for number, _ in enumerate(self.moment.impls):
            place = middle + (number - (len(self.moment.impls) - 1) / 2) * 5
            self.arrow(
                (IMPL_X + IMPL_PT[0], self.impl_y(number) + IMPL_PT[1] / 2 - 4),
                (STORAGE_X, place),
            )
        self.arrow(
            (STORAGE_X + STORAGE_PT[0], self.top + 6),
            (SEGMENT_X + self.across(first) + 5, self.top + SEGMENT_DOWN),
            way="angle,angleA=0,angleB=90,rad=3",
        )

    def versions(self):
        users = [impl.version for impl in self.moment.impls]
        for number, value in enumerate(self.moment.versions):
            lines = [index for index, version in enumerate(users) if version == number]
            y = self.top + STORAGE_PT[1] + 10 + number * 24
            if len(users) > 2:  # the second one beside the impl that has it alone
                y = self.impl_y(lines[0] if number else len(users) // 2 - 1) + 14
            self.box(STORAGE_X, y, (54, 15), [f"version {value}"], fill="raised")
            for place, index in enumerate(lines):
                self.arrow(
                    (IMPL_X + IMPL_PT[0], self.impl_y(index) + IMPL_PT[1] / 2 + 5),
                    (STORAGE_X, y + 7.5 + (place - (len(lines) - 1) / 2) * 4),
                    "muted",
                    ":",
                )

    def across(self, position):
        return SEGMENT_PT[0] * position / self.moment.segments[0]

    def segment(self):
        from matplotlib.patches import Rectangle

        for first, end, state in self.moment.blocks:
            self.axes.add_patch(
                Rectangle(
                    (SEGMENT_X + self.across(first), self.top + SEGMENT_DOWN),
                    self.across(end - first),
                    SEGMENT_PT[1],
                    facecolor=style.color("allocated" if state == "allocated" else "idle"),
                    edgecolor=style.color("plate"),
                    linewidth=1.2,
                )
            )
        begin, top = self.moment.storages[0][2], self.top + SEGMENT_DOWN + SEGMENT_PT[1] + 6
        for number, impl in enumerate(self.moment.impls):
            names = [name for name, index in self.moment.handles if index == number]
            y = top + number * 9
            self.axes.add_patch(
                Rectangle(
                    (SEGMENT_X + self.across(begin + impl.first), y - 1.5),
                    self.across(impl.end - impl.first),
                    3,
                    facecolor=style.color("muted"),
                    linewidth=0,
                )
            )
            right = SEGMENT_X + self.across(begin + impl.end) + 4
            self.canvas.text(
                right, y + 2.5, ", ".join(names) or "the base", 7, color=style.color("muted")
            )

    def draw(self):
        self.canvas.text(
            HANDLE_X, self.top - 8, self.moment.line, style.FONT_SMALL_PT, weight="bold"
        )
        self.storage()
        self.versions()
        self.segment()
        self.impls()
        self.handles()


def draw(moments):
    top = style.TITLE_PT + 28
    canvas = style.Canvas(top + sum(moment.height() for moment in moments) + 8, WIDTH_PT)
    canvas.title("From handles to memory, line by line")
    axes = canvas.axes(0, 0, canvas.width, canvas.height)
    axes.set_xlim(0, canvas.width)
    axes.set_ylim(canvas.height, 0)
    axes.set_axis_off()
    heads = [(HANDLE_X, "handles"), (IMPL_X, "impls"), (STORAGE_X, "storage, version counters")]
    size = style.format_bytes(moments[0].segments[0], chosen=True)
    for x, text in [*heads, (SEGMENT_X, f"blocks of a {size} segment")]:
        canvas.text(x, style.TITLE_PT + 6, text, TEXT_PT, color=style.color("muted"))
    key = [("allocated", "allocated", "area"), ("free", "idle", "area")]
    canvas.key(SEGMENT_X, style.TITLE_PT + 18, key)
    for moment in moments:
        Panel(canvas, axes, moment, top + HEAD_PT).draw()
        top += moment.height()
    canvas.text(
        HANDLE_X,
        top + 2,
        "Solid arrows into an impl or a storage make its strong count; dotted: version counters; "
        "grey bars: what an impl reaches.",
        TEXT_PT,
        color=style.color("muted"),
    )
    return canvas


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip())
    svg, png, _ = style.render(draw(read(sys.argv[1])), "tensor")
    pathlib.Path(sys.argv[2]).write_text(svg, encoding="utf-8")
    if len(sys.argv) == 4:
        pathlib.Path(sys.argv[3]).write_bytes(png)


if __name__ == "__main__":
    main()
