"""Draws the timeline of a simulator transcript: a row a stream, operations, and waits as arrows.

    timeline.py TRANSCRIPT.json PICTURE.png

For more than a picture for a page, open the transcript in ui.perfetto.dev.
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

INK = "#333333"
COLORS = {"copy": "#4477aa", "kernel": "#228833", "fill": "#66ccee", "host": "#ccbb44"}


def read(path):
    """Rows by (process, row), operations and arrows of devices; times in us."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = [event for event in events if event["ph"] == "M"]
    devices = {
        event["pid"]
        for event in names
        if event["name"] == "process_name" and event["args"]["name"].startswith("device")
    }
    rows = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in names
        if event["name"] == "thread_name" and event["pid"] in devices
    }
    operations = [event for event in events if event["ph"] == "X" and event["pid"] in devices]
    leaves = {event["id"]: event for event in events if event["ph"] == "s"}
    arrows = [(leaves[event["id"]], event) for event in events if event["ph"] == "f"]
    return dict(sorted(rows.items())), operations, arrows


def draw(rows, operations, arrows, path):
    start = min(event["ts"] for event in operations)
    height = {row: -index for index, row in enumerate(rows)}
    figure, axes = plt.subplots(figsize=(9, 0.7 + 0.75 * len(rows)), layout="constrained")
    for event in operations:
        if event["dur"] < 1:
            continue  # records and waits are where the arrows are
        words = event["name"].split()
        left, width = event["ts"] - start, event["dur"]
        row = height[event["pid"], event["tid"]]
        axes.barh(row, width, left=left, height=0.62, color=COLORS.get(words[0], INK))
        axes.text(left + width / 2, row, " ".join(words[:2]) if words[0] == "kernel" else words[0],
                  color="white", ha="center", va="center", fontsize=9)
    for leaves, arrives in arrows:
        at, to = height[leaves["pid"], leaves["tid"]], height[arrives["pid"], arrives["tid"]]
        side = 0.31 if to > at else -0.31
        axes.annotate("", (arrives["ts"] - start, to - side), (leaves["ts"] - start, at + side),
                      arrowprops={"arrowstyle": "->", "color": INK, "shrinkA": 0, "shrinkB": 0})
    axes.set_yticks(list(height.values()), list(rows.values()))
    axes.set_xlabel("virtual time, \N{MICRO SIGN}s (modelled)")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, dpi=110)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    draw(*read(sys.argv[1]), sys.argv[2])


main()
