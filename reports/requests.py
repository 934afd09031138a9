"""The picture of two programs' requests side by side: bytes asked for over time, and the shares of
requests up to each size. Of `requests.json`, which //workload:compare writes.

The recording is the area, the run the line on it: where they agree, the line is the area's edge.
"""

import dataclasses
import math
import os

from reports import reader, style
from reports.page import write_file

STEM = "requests"
KEY_PT, CURVE_PT, GAP_PT, SHARES_PT, AXIS_PT = 20, 120, 30, 110, 20
PLOT_LEFT, PLOT_RIGHT_MARGIN = 34, 8


@dataclasses.dataclass
class Side:
    name: str
    allocations: int
    peak_bytes: int
    curve: list  # bytes, the most in each slice of the run


@dataclasses.dataclass
class Comparison:
    run: Side
    recording: Side
    size_distance: float
    sizes: list  # (bytes, requests of the run, of the recording), by bytes


def load_side(value):
    return Side(
        value.get("name").text(),
        value.get("allocations").number(),
        value.get("peak_requested_bytes").number(),
        value.get("requested_bytes").numbers(),
    )


def load(folder):
    """A Comparison; reader.ResultError in one line."""
    root = reader.read_json(folder, f"{STEM}.json")
    if root is None:
        raise reader.ResultError(f"{os.path.join(folder, STEM)}.json: no such file")
    return Comparison(
        load_side(root.get("run")),
        load_side(root.get("recording")),
        root.get("size_distance").number(),
        [tuple(row.numbers()) for row in root.get("sizes").items()],
    )


def shares(sizes, side):
    """The corners of a curve: the share of requests of at most each size. SIDE: 1 the run, 2 the
    recording.
    """
    total = sum(row[side] for row in sizes)
    x, y, seen = [sizes[0][0]], [0.0], 0
    for row in sizes:
        if row[side] == 0:
            continue
        x += [row[0], row[0]]
        y += [seen / total, (seen + row[side]) / total]
        seen += row[side]
    return x + [sizes[-1][0]], y + [1.0]


def place_of_distance(sizes):
    """(size, share, share) where the two shares are furthest apart."""
    totals = [sum(row[side] for row in sizes) for side in (1, 2)]
    seen, best = [0, 0], (sizes[0][0], 0.0, 0.0)
    for row in sizes:
        seen = [seen[0] + row[1], seen[1] + row[2]]
        pair = (seen[0] / totals[0], seen[1] / totals[1])
        if abs(pair[0] - pair[1]) > abs(best[1] - best[2]):
            best = (row[0], *pair)
    return best


def draw_curves(canvas, top, comparison):
    run, recording = comparison.run, comparison.recording
    width = canvas.width - PLOT_LEFT - PLOT_RIGHT_MARGIN
    axes = canvas.axes(PLOT_LEFT, top, width, CURVE_PT)
    high = max(run.peak_bytes, recording.peak_bytes) * 1.04
    axes.set_ylim(0, high)
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    step = 2 ** math.floor(math.log2(high / 2))
    ticks = [i * step for i in range(int(high // step) + 1)]
    axes.set_yticks(ticks, [style.format_bytes(tick, chosen=True) for tick in ticks])
    axes.grid(axis="y", color=style.color("grid"), linewidth=0.6)
    axes.set_axisbelow(True)
    for side in (recording, run):
        count = len(side.curve)
        x = [i / count for i in range(count)]
        if side is recording:
            axes.fill_between(x, side.curve, step="post", color=style.color("allocated"), lw=0)
        else:
            axes.step(x, side.curve, where="post", color=style.color("ink"), linewidth=0.8)
    canvas.text(PLOT_LEFT, top + CURVE_PT + 12, "start", 8, color=style.color("muted"))
    canvas.text(
        canvas.width - PLOT_RIGHT_MARGIN, top + CURVE_PT + 12, "end", 8, ha="right",
        color=style.color("muted"),
    )


def draw_shares(canvas, top, comparison):
    width = canvas.width - PLOT_LEFT - PLOT_RIGHT_MARGIN
    axes = canvas.axes(PLOT_LEFT, top, width, SHARES_PT)
    sizes = comparison.sizes
    axes.set_xscale("log", base=2)
    axes.set_xlim(max(sizes[0][0], 1) / 2, sizes[-1][0] * 2)
    axes.set_ylim(0, 1.02)
    powers = range(0, 60, 10)
    axes.set_xticks(
        [2**p for p in powers if axes.get_xlim()[0] <= 2**p <= axes.get_xlim()[1]],
        [
            style.format_bytes(2**p, chosen=True)
            for p in powers
            if axes.get_xlim()[0] <= 2**p <= axes.get_xlim()[1]
        ],
    )
    axes.minorticks_off()
    axes.set_yticks([0, 0.5, 1], ["0", "50" + style.NBSP + "%", "100" + style.NBSP + "%"])
    axes.grid(axis="y", color=style.color("grid"), linewidth=0.6)
    axes.plot(*shares(sizes, 2), color=style.color("allocated"), linewidth=3, alpha=0.75)
    axes.plot(*shares(sizes, 1), color=style.color("ink"), linewidth=0.8)
    size, low, high = place_of_distance(sizes)
    if low != high:
        axes.plot([size, size], [low, high], color=style.color("alarm"), linewidth=1.6)


def draw(comparison):
    """A canvas."""
    run, recording = comparison.run, comparison.recording
    canvas = style.Canvas(
        style.TITLE_PT + KEY_PT + CURVE_PT + GAP_PT + KEY_PT + SHARES_PT + AXIS_PT
    )
    top = canvas.title(f"{run.name} beside {recording.name}")
    entries = [
        (f"recording, peak {style.format_bytes(recording.peak_bytes)}", "allocated", "area"),
        (f"run, peak {style.format_bytes(run.peak_bytes)}", "ink", "area"),
    ]
    canvas.key(PLOT_LEFT, top + 10, entries)
    top += KEY_PT
    draw_curves(canvas, top, comparison)
    top += CURVE_PT + GAP_PT
    text = (
        f"Share of {style.format_count(run.allocations)} and"
        f" {style.format_count(recording.allocations)} allocations up to a size;"
        f" furthest apart {style.format_percent(comparison.size_distance)}"
    )
    canvas.text(PLOT_LEFT, top + 8, text, style.FONT_SMALL_PT, color=style.color("muted"))
    draw_shares(canvas, top + KEY_PT, comparison)
    return canvas


def build(folder):
    """Draws FOLDER/requests.json; returns the paths of the pictures."""
    svg, png, _ = style.render(draw(load(folder)), STEM)
    paths = [os.path.join(folder, f"{STEM}.{suffix}") for suffix in ("png", "svg")]
    write_file(paths[0], png)
    write_file(paths[1], svg.encode("utf-8"))
    return paths
