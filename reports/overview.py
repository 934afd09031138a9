"""One picture of traces and configurations: peak reserved memory relative to the default, for use
outside the page.

The page has the same numbers as a table (page_head.py), which scrolls on a phone and can
be copied.
"""

from reports import ranking, style

CELL_HEIGHT_PT, CELL_WIDTH_MAX_PT = 17, 62
LABEL_MAX_PT = 112
COLUMN_COUNT_MAX, ROW_COUNT_MAX = 8, 40


def columns(results):
    """Configuration names, the default first, then best first."""
    names = [row.config_name for row in ranking.compare_all(results)]
    return [name for name in names if name == ranking.BASELINE] + [
        name for name in names if name != ranking.BASELINE
    ]


def cell(run, baseline):
    """(text, relative change or None) of a cell."""
    if run is None:
        return "–", None
    if run.out_of_memory:
        return "OOM", None
    if run is baseline:
        return style.format_bytes(run.peak_reserved_bytes), None
    relative = ranking.change(run, baseline)
    if relative is None:
        return style.format_bytes(run.peak_reserved_bytes), None
    return ("same", 0.0) if relative == 0 else (style.format_percent(relative, True), relative)


def draw_overview(results, title):
    """A canvas: a row a trace, a column a configuration."""
    every = columns(results)
    names, traces = every[:COLUMN_COUNT_MAX], results.traces[:ROW_COUNT_MAX]
    label = min(
        max(style.text_width(trace, style.FONT_SMALL_PT) for trace in traces) + 14, LABEL_MAX_PT
    )
    width = min((style.FIGURE_WIDTH_PT - label - 4) / len(names), CELL_WIDTH_MAX_PT)
    size = 7 if width < 48 else style.FONT_SMALL_PT
    # Where names are wide, neighbours stand on two levels: each has the width of two cells.
    crowded = max(style.text_width(name, size) for name in names) > width - 4
    first_row = style.TITLE_PT + (30 if crowded else 18)
    canvas = style.Canvas(first_row + CELL_HEIGHT_PT * len(traces) + 22)
    canvas.title(title)
    for index, name in enumerate(names):
        top = first_row - (18 if crowded and index % 2 else 6)
        name = style.shorten(name, size, 2 * width if crowded else width)
        canvas.text(label + width * (index + 0.5), top, name, size, ha="center")
    axes = canvas.axes(0, 0, canvas.width, canvas.height)
    axes.axis("off")
    axes.set_xlim(0, canvas.width)
    axes.set_ylim(canvas.height, 0)
    for row, trace in enumerate(traces):
        top = first_row + CELL_HEIGHT_PT * row
        name = style.shorten(trace, style.FONT_SMALL_PT, label - 8)
        canvas.text(label - 6, top + 11.5, name, style.FONT_SMALL_PT, ha="right")
        runs = {run.config_name: run for run in results.runs_of(trace)}
        verdict = ranking.judge(list(runs.values()))
        for column, name in enumerate(names):
            box = (label + width * column, top, width)
            draw_cell(canvas, axes, box, runs.get(name), verdict, size)
    note = "Blue: less, orange: more, OOM: out of memory, bold: the setting to run."
    if len(names) < len(every) or len(traces) < len(results.traces):
        note += " Not all are shown."
    canvas.text(style.MARGIN_PT, canvas.height - 6, note, 7, color=style.color("muted"))
    return canvas


def draw_cell(canvas, axes, box, run, verdict, size):
    """BOX: left, top and width."""
    from matplotlib.patches import Rectangle

    left, top, width = box
    text, relative = cell(run, verdict.baseline)
    if relative:
        tint, strength = style.heat(relative)
        shade = {"facecolor": style.color(tint), "alpha": style.HEAT_ALPHA * strength}
        place = (left + 1, top + 1)
        axes.add_patch(Rectangle(place, width - 2, CELL_HEIGHT_PT - 2, linewidth=0, **shade))
    failed = run is not None and run.out_of_memory
    canvas.text(
        left + width / 2,
        top + 11.5,
        style.shorten(text, size, width),
        size,
        ha="center",
        weight="bold" if run is not None and run is verdict.choice else "normal",
        color=style.color("alarm" if failed else "ink"),
    )
