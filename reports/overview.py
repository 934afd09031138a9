"""One picture of traces and configurations: peak reserved memory relative to the default, for use
outside the page.

The page has the same numbers as a table (page_head.py), which scrolls on a phone and can
be copied.
"""

from reports import ranking, style

CELL_HEIGHT_PT, CELL_WIDTH_MAX_PT = 17, 62
LABEL_PT = 82
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


def draw_overview(results):
    """A canvas: a row a trace, a column a configuration."""
    from matplotlib.patches import Rectangle

    names = columns(results)[:COLUMN_COUNT_MAX]
    traces = results.traces[:ROW_COUNT_MAX]
    canvas = style.Canvas(58 + CELL_HEIGHT_PT * len(traces) + 22)
    width = min((canvas.width - LABEL_PT - 8) / len(names), CELL_WIDTH_MAX_PT)
    size = 7 if width < 48 else style.FONT_SMALL_PT
    canvas.text(8, 13, "Peak reserved memory relative to the default", weight="bold")
    crowded = max(style.text_width(name, size) for name in names) > width - 4
    axes = canvas.axes(0, 0, canvas.width, canvas.height)
    axes.axis("off")
    axes.set_xlim(0, canvas.width)
    axes.set_ylim(canvas.height, 0)
    for index, name in enumerate(names):
        # Where names are wide, neighbours stand on two levels, so that each has the width of two
        # cells.
        level = 36 if crowded and index % 2 else 48
        room = 2 * width if crowded else width
        canvas.text(
            LABEL_PT + width * (index + 0.5),
            level,
            style.shorten(name, size, room),
            size,
            ha="center",
        )
    for row, trace in enumerate(traces):
        top = 54 + CELL_HEIGHT_PT * row
        runs = {run.config_name: run for run in results.runs_of(trace)}
        verdict = ranking.judge(list(runs.values()))
        canvas.text(
            LABEL_PT - 6,
            top + 11.5,
            style.shorten(trace, style.FONT_SMALL_PT, LABEL_PT - 12),
            style.FONT_SMALL_PT,
            ha="right",
        )
        for column, name in enumerate(names):
            run = runs.get(name)
            text, relative = cell(run, verdict.baseline)
            left = LABEL_PT + width * column
            if relative is not None and relative != 0:
                tint = "allocated" if relative < 0 else "idle"
                axes.add_patch(
                    Rectangle(
                        (left + 1, top + 1),
                        width - 2,
                        CELL_HEIGHT_PT - 2,
                        linewidth=0,
                        facecolor=style.color(tint),
                        alpha=0.5 * min(1.0, abs(relative) / 0.3),
                    )
                )
            chosen = verdict.choice is not None and run is verdict.choice
            canvas.text(
                left + width / 2,
                top + 11.5,
                style.shorten(text, size, width),
                size,
                ha="center",
                weight="bold" if chosen else "normal",
                color=style.color("alarm" if run is not None and run.out_of_memory else "ink"),
            )
    note = "Blue: less, orange: more, OOM: out of memory, bold: the setting to run."
    if len(names) < len(columns(results)) or len(traces) < len(results.traces):
        note += " Not all are shown."
    canvas.text(8, canvas.height - 6, note, 7, color=style.color("muted"))
    return canvas
