"""Draws the pictures of docs/capture-reuse.md from what its program prints.

    capture_reuse_pictures.py FOLDER

makes FOLDER/capture_graphs.svg and FOLDER/capture_costs.svg, prints the page's lines, and with
--png pictures as PNG beside them.
"""

import csv
import os
import pathlib
import subprocess
import sys

import style

PROGRAM = "docs/examples/capture_reuse"
PANELS = [
    ("joined", "current"),
    ("just_joined", "first"),
    ("joined", "first"),
    ("before_join", "current"),
    ("diamond_one", "current"),
    ("diamond", "current"),
]
BOX_PT, LANE_PT, COLUMN_PT = (38, 14), 24, 44
LEFT_PT, HEAD_PT, GAP_PT = 44, 30, 12


def printed(what):
    return subprocess.run([PROGRAM, what], capture_output=True, text=True, check=True).stdout


class Graph:
    def __init__(self):
        self.words, self.reused = "", False
        self.nodes, self.edges = [], []
        self.markers, self.terminals = set(), set()

    def visited(self):
        """All that B comes behind."""
        before = {}
        for first, second in self.edges:
            before.setdefault(second, []).append(first)
        seen, left = set(), list(self.terminals)
        while left:
            node = left.pop()
            if node not in seen:
                seen.add(node)
                left += before.get(node, [])
        return seen


def read(text):
    graphs = {}
    for kind, name, form, *rest in csv.reader(text.splitlines()):
        graph = graphs.setdefault((name, form), Graph())
        if kind == "example":
            graph.reused, graph.words = rest[0] == "1", ",".join(rest[1:])
        elif kind == "node":
            graph.nodes.append((int(rest[1]), rest[2]))
        elif kind == "edge":
            graph.edges.append((int(rest[0]), int(rest[1])))
        else:
            {"marker": graph.markers, "terminal": graph.terminals}[kind].add(int(rest[0]))
    for graph in graphs.values():  # those of the first form are nodes
        graph.markers |= {
            index for index, (_, label) in enumerate(graph.nodes) if label == "mark"
        }
    return graphs


def lanes_of(graph):
    return max(stream for stream, _ in graph.nodes)


def panel_height(graph):
    return HEAD_PT + lanes_of(graph) * LANE_PT + GAP_PT


def place_of(graph, top, index):
    """Centre of a node's box."""
    stream, _ = graph.nodes[index]
    return (
        LEFT_PT + BOX_PT[0] / 2 + index * COLUMN_PT,
        top + HEAD_PT + (stream - 1) * LANE_PT + BOX_PT[1] / 2,
    )


def draw_edge(canvas, axes, start, end, known):
    from matplotlib.patches import FancyArrowPatch

    (x, y), (to_x, to_y) = start, end
    same_lane = y == to_y
    curve = "arc3,rad=-0.25" if same_lane and to_x - x > COLUMN_PT + 1 else "arc3,rad=0"
    axes.add_patch(
        FancyArrowPatch(
            (x + BOX_PT[0] / 2, y),
            (to_x - BOX_PT[0] / 2, to_y),
            arrowstyle="-|>",
            mutation_scale=6,
            shrinkA=0,
            shrinkB=0,
            linewidth=1.0 if known else 0.8,
            connectionstyle=curve,
            color=style.color("ink" if known else "limit"),
        )
    )


def draw_node(canvas, axes, graph, top, index, visited):
    from matplotlib.patches import FancyBboxPatch

    x, y = place_of(graph, top, index)
    _, label = graph.nodes[index]
    is_marker, is_b = index in graph.markers, label == "B"
    fill = "good" if is_b and graph.reused else "alarm" if is_b else None
    shade = style.color(fill or ("grid" if index in visited else "plate"))
    axes.add_patch(
        FancyBboxPatch(
            (x - BOX_PT[0] / 2 + 2, y - BOX_PT[1] / 2 + 2),
            BOX_PT[0] - 4,
            BOX_PT[1] - 4,
            boxstyle="round,pad=2",
            facecolor=shade,
            edgecolor=style.color("allocated" if is_marker else "limit"),
            linewidth=1.8 if is_marker else 0.7,
            linestyle="--" if label == "mark" else "-",
        )
    )
    canvas.text(
        x,
        y + 2.8,
        label,
        7.5,
        ha="center",
        color=style.color("plate" if fill else "ink"),
        weight="bold" if fill else "normal",
    )


def draw_panel(canvas, axes, top, graph, form):
    visited = graph.visited()
    verdict = "B gets A's memory" if graph.reused else "B gets new memory"
    canvas.text(style.MARGIN_PT, top + 9, f"{graph.words} ({form} form)", style.FONT_SMALL_PT)
    canvas.text(
        style.MARGIN_PT,
        top + 20,
        verdict,
        style.FONT_SMALL_PT,
        weight="bold",
        color=style.color("good" if graph.reused else "alarm"),
    )
    for lane in range(lanes_of(graph)):
        canvas.text(
            style.MARGIN_PT,
            top + HEAD_PT + lane * LANE_PT + BOX_PT[1] / 2 + 3,
            f"stream {lane + 1}",
            7,
            color=style.color("muted"),
        )
    for first, second in graph.edges:
        known = second in visited or graph.nodes[second][1] == "B"
        draw_edge(
            canvas, axes, place_of(graph, top, first), place_of(graph, top, second), known
        )
    for index in range(len(graph.nodes)):
        draw_node(canvas, axes, graph, top, index, visited)


def draw_graphs(graphs):
    chosen = [(graphs[panel], panel[1]) for panel in PANELS]
    height = style.TITLE_PT + 20 + sum(panel_height(graph) for graph, _ in chosen)
    canvas = style.Canvas(height)
    canvas.title("May B have the memory of A?")
    axes = canvas.axes(0, 0, canvas.width, canvas.height)
    axes.set_xlim(0, canvas.width)
    axes.set_ylim(canvas.height, 0)
    axes.set_axis_off()
    canvas.text(
        style.MARGIN_PT,
        style.TITLE_PT + 8,
        "thick blue: ends of A's uses; grey: all that B comes behind",
        style.FONT_SMALL_PT,
        color=style.color("muted"),
    )
    top = style.TITLE_PT + 20
    for graph, form in chosen:
        draw_panel(canvas, axes, top, graph, form)
        top += panel_height(graph)
    return canvas


def draw_costs(text):
    forms = {}
    for row in csv.DictReader(text.splitlines()):
        forms.setdefault(row["form"], []).append((int(row["nodes"]), int(row["questions"])))
    canvas = style.Canvas(190)
    canvas.title("What a request asks the driver")
    axes = canvas.axes(44, style.TITLE_PT + 24, canvas.width - 44 - 76, 110)
    for name, color in (("first form", "idle"), ("current", "allocated")):
        nodes, questions = zip(*forms[name])
        axes.plot(nodes, questions, color=style.color(color), marker="o", markersize=3.5)
        axes.annotate(
            name,
            (nodes[-1], questions[-1]),
            xytext=(7, -3),
            textcoords="offset points",
            color=style.color(color),
            fontsize=style.FONT_PT,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.grid(color=style.color("grid"), linewidth=0.6)
    axes.set_xlabel("nodes captured before")
    canvas.text(
        style.MARGIN_PT,
        style.TITLE_PT + 10,
        "dependencies of a node, asked for by a request and its free",
        style.FONT_SMALL_PT,
        color=style.color("muted"),
    )
    return canvas


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    folder = pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), sys.argv[1])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"{folder}: {error.strerror}")
    pictures = {
        "capture_graphs": draw_graphs(read(printed("graphs"))),
        "capture_costs": draw_costs(printed("costs")),
    }
    for name, canvas in pictures.items():
        svg, png, _ = style.render(canvas, name)
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        if sys.argv[2:] == ["--png"]:
            (folder / f"{name}.png").write_bytes(png)
    print(subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout, end="")


if __name__ == "__main__":
    main()
