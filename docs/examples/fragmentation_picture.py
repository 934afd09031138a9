"""Draws the picture of docs/fragmentation.md from what its program prints.

    fragmentation_picture.py STEPS.csv PICTURE.svg [PICTURE.png]

STEPS.csv is the output of `fragmentation steps`.
"""

import csv
import pathlib
import sys

import style

PANEL_PT, GAP_PT, LEFT_PT, RIGHT_PT = 84, 30, 40, 62


def read(path):
    """Points (step, allocated, reserved) by order of the sizes, in MiB."""
    orders = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            point = (int(row["step"]), int(row["allocated"]), int(row["reserved"]))
            orders.setdefault(row["order"], []).append(point)
    return orders


def draw_panel(canvas, top, name, points, highest):
    width = canvas.width - LEFT_PT - RIGHT_PT
    axes = canvas.axes(LEFT_PT, top, width, PANEL_PT)
    last = points[-1]
    steps, allocated, reserved = zip(*points, (last[0] + 1, *last[1:]))
    axes.fill_between(steps, reserved, step="post", color=style.color("idle"), linewidth=0)
    axes.fill_between(steps, allocated, step="post", color=style.color("allocated"), linewidth=0)
    axes.set_xlim(0, steps[-1])
    axes.set_ylim(0, highest)
    axes.set_xticks([])
    axes.set_yticks([0, max(allocated), highest])
    axes.grid(axis="y", color=style.color("grid"), linewidth=0.6)
    axes.set_axisbelow(True)
    canvas.text(LEFT_PT, top - 8, name)
    height = top + PANEL_PT * (1 - reserved[-1] / highest)
    canvas.text(LEFT_PT + width + 5, height + 3, f"{reserved[-1]} MiB", weight="bold")


def draw(orders):
    highest = max(point[2] for points in orders.values() for point in points)
    top = style.TITLE_PT + 40
    canvas = style.Canvas(top + len(orders) * (PANEL_PT + GAP_PT) + 6)
    canvas.title("The same buffers in two orders")
    key = [("allocated", "allocated", "area"), ("reserved and free", "idle", "area")]
    canvas.key(LEFT_PT, style.TITLE_PT + 12, key)
    for name, points in orders.items():
        draw_panel(canvas, top, name, points, highest)
        top += PANEL_PT + GAP_PT
    canvas.text(
        LEFT_PT,
        top - GAP_PT + 14,
        "MiB; from left to right each request and each free is a step",
        style.FONT_SMALL_PT,
        color=style.color("muted"),
    )
    return canvas


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip())
    svg, png, _ = style.render(draw(read(sys.argv[1])), "fragmentation")
    pathlib.Path(sys.argv[2]).write_text(svg, encoding="utf-8")
    if len(sys.argv) == 4:
        pathlib.Path(sys.argv[3]).write_bytes(png)


if __name__ == "__main__":
    main()
