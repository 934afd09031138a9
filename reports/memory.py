"""Pictures of a trace: memory over time under each configuration, and where its blocks lie at the
end.

Both are small multiples on one scale, a configuration a panel, so that panels are compared by eye
and no line has to be found in a legend. Memory over time is drawn from the largest value in each of
a few hundred slices of the replay, so that no peak is lost. In the map every row is as many bytes
wide as every other, so equal area is equal memory.
"""

import math

from reports import ranking, style

PANEL_COUNT_MAX = 8
MAP_COUNT_MAX = 3
SLICE_COUNT = 320
# A limit this much above the peak is far away, and is not drawn.
NEAR_LIMIT = 1.35

KEY_PT, HEADING_PT, EVENT_AXIS_PT = 20, 26, 22
# The height of the middle panel, and the bounds of all.
PANEL_PT, PANEL_MIN_PT, PANEL_MAX_PT = 40, 12, 150

PLOT_LEFT, PLOT_RIGHT_MARGIN = 8, 8
MAP_ROW_PT, MAP_GAP_PT, MAP_ROW_COUNT = 8, 2, 14
MAP_ROW_COUNT_MAX = 22
STREAM_NUMBER_MAX = 9999


def curves_to_draw(runs):
    """The configurations with curves, best first; of too many, the best ones, the baseline and
    the last.
    """
    ranked = [run for run in ranking.rank(runs) if run.memory is not None]
    if len(ranked) <= PANEL_COUNT_MAX:
        return ranked
    keep = {id(ranked[-1]), id(ranking.baseline_of(runs))}
    room = PANEL_COUNT_MAX - len(keep)
    for run in ranked[:room]:
        keep.add(id(run))
    return [run for run in ranked if id(run) in keep]


def slices(series):
    """The series as it is if it is short, else the largest reserved and allocated bytes of each
    slice of it.
    """
    events = series["event"]
    if len(events) <= SLICE_COUNT:
        return events, series["reserved_bytes"], series["allocated_bytes"]
    first, last = events[0], events[-1]
    width = max((last - first) / SLICE_COUNT, 1e-9)
    starts, reserved, allocated = [], [], []
    current = None
    for event, held, used in zip(events, series["reserved_bytes"], series["allocated_bytes"]):
        index = min(int((event - first) / width), SLICE_COUNT - 1)
        if index != current:
            current = index
            starts.append(event)
            reserved.append(held)
            allocated.append(used)
        else:
            reserved[-1] = max(reserved[-1], held)
            allocated[-1] = max(allocated[-1], used)
    return (
        starts + [last],
        reserved + [series["reserved_bytes"][-1]],
        allocated + [series["allocated_bytes"][-1]],
    )


def steps(events, values):
    """The corners of a curve that keeps each value until the next event; memory is flat for
    long.
    """
    x, y = [events[0]], [values[0]]
    for event, value in zip(events[1:], values[1:]):
        if value != y[-1]:
            x += [event, event]
            y += [y[-1], value]
    if x[-1] != events[-1]:
        x.append(events[-1])
        y.append(y[-1])
    return x, y


def near_limit(run):
    """The limit, if the run's peak comes near it, else None."""
    limit = run.limit_bytes
    return limit if limit is not None and limit <= NEAR_LIMIT * run.peak_reserved_bytes else None


def panel_heights(drawn, baseline):
    """(points a byte, height of each panel): one scale for all, so that a panel is as high as
    what it shows.
    """
    shown = [
        max(
            run.peak_reserved_bytes,
            near_limit(run) or 0,
            baseline.peak_reserved_bytes if baseline else 0,
        )
        * 1.04
        for run in drawn
    ]
    points = min(PANEL_PT / (sorted(shown)[len(shown) // 2] or 1), PANEL_MAX_PT / (max(shown) or 1))
    return points, [max(size * points, PANEL_MIN_PT) for size in shown]


def draw_curves(runs, title):
    """A canvas: one panel a configuration, reserved and allocated memory over the events of the
    replay.
    """
    drawn = curves_to_draw(runs)
    baseline = ranking.baseline_of(runs)
    if baseline.memory is None or len(drawn) == 1:
        baseline = None
    points, heights = panel_heights(drawn, baseline)
    height = style.TITLE_PT + KEY_PT + sum(heights) + len(drawn) * HEADING_PT + EVENT_AXIS_PT
    canvas = style.Canvas(height)
    top = canvas.title(title)
    draw_curves_key(canvas, top + 10, drawn, baseline)
    event_last = max(run.memory.series["event"][-1] for run in drawn)
    top += KEY_PT
    for run, height in zip(drawn, heights):
        limit = near_limit(run)
        draw_heading(
            canvas,
            top + 12,
            run,
            f"peak {style.format_bytes(run.peak_reserved_bytes)}"
            + (f" of {style.format_bytes(limit)}" if limit else ""),
        )
        axes = canvas.axes(
            PLOT_LEFT, top + HEADING_PT - 6, canvas.width - PLOT_LEFT - PLOT_RIGHT_MARGIN, height
        )
        axes.set_xlim(0, max(event_last, 1))
        axes.set_ylim(0, height / points)
        axes.set_yticks([])
        axes.set_xticks([])
        draw_panel(axes, run, None if run is baseline else baseline)
        top += HEADING_PT + height
    draw_event_axis(canvas, axes, top - 6, event_last)
    return canvas


def draw_curves_key(canvas, top, drawn, baseline):
    entries = [("allocated", "allocated", "area"), ("reserved, idle", "idle", "area")]
    if baseline is not None:
        entries.append(
            (f"under {style.shorten(baseline.config_name, style.FONT_SMALL_PT, 80)}", "ink", "line")
        )
    if any(near_limit(run) for run in drawn):
        entries.append(("limit", "alarm", "line"))
    canvas.key(PLOT_LEFT, top, entries)


def curves_caption(runs):
    drawn, all_runs = len(curves_to_draw(runs)), len(runs)
    text = (
        "Blue is allocated, orange is reserved beyond that: memory that the process holds and does"
        " not use. All panels have one scale, best setting first. "
    )
    if ranking.baseline_of(runs).memory is not None and drawn > 1:
        text += (
            f"Dashes repeat what `{ranking.baseline_of(runs).config_name}` reserves: orange below"
            " them is saved. "
        )
    if any(len(run.memory.series["event"]) > SLICE_COUNT for run in curves_to_draw(runs)):
        text += f"Each of {SLICE_COUNT} slices shows its largest values. "
    if drawn < all_runs:
        text += f"{all_runs - drawn} of {all_runs} configurations are not drawn. "
    if any(run.limit_bytes is not None for run in curves_to_draw(runs)):
        text += "A limit is drawn where the peak comes near it. "
    return text.strip()


def draw_heading(canvas, top, run, right):
    """Name in bold, then the setting, and a figure at the right end of the same line."""
    name = style.shorten(run.config_name, style.FONT_PT, 130)
    canvas.text(PLOT_LEFT, top, name, weight="bold")
    left = PLOT_LEFT + style.text_width(name, style.FONT_PT) * 1.12 + 6
    right_start = canvas.width - PLOT_RIGHT_MARGIN - style.text_width(right, style.FONT_PT)
    setting = style.shorten(run.config, style.FONT_SMALL_PT, right_start - left - 8)
    if setting and run.config != run.config_name:
        canvas.text(left, top, setting, style.FONT_SMALL_PT, color=style.color("muted"))
    canvas.text(canvas.width - PLOT_RIGHT_MARGIN, top, right, ha="right")


def draw_panel(axes, run, baseline):
    events, reserved, allocated = slices(run.memory.series)
    axes.fill_between(*steps(events, reserved), color=style.color("idle"), linewidth=0)
    axes.fill_between(*steps(events, allocated), color=style.color("allocated"), linewidth=0)
    if baseline is not None:
        base_events, base_reserved, _ = slices(baseline.memory.series)
        axes.plot(
            *steps(base_events, base_reserved),
            color=style.color("ink"),
            linewidth=0.9,
            dashes=(3, 2),
        )
    limit = near_limit(run)
    if limit is not None:
        axes.axhline(limit, color=style.color("alarm"), linewidth=0.9, dashes=(3, 2))
    if run.ended_early:
        draw_out_of_memory(axes, run, events[-1], axes.get_ylim()[1])


def draw_out_of_memory(axes, run, event, high):
    """A line where the replay ended, and what it could not get."""
    axes.axvline(event, color=style.color("alarm"), linewidth=1.2)
    text = "out of memory"
    detail = run.memory.out_of_memory
    if detail is not None:
        text += (
            f" at event{style.NBSP}{style.format_count(detail['event'])}\nasking for"
            f" {style.format_bytes(detail['size_bytes'])}"
        )
    right_half = event > axes.get_xlim()[1] * 0.6
    axes.annotate(
        text,
        (event, high * 0.92),
        xytext=(-4 if right_half else 4, 0),
        textcoords="offset points",
        va="top",
        ha="right" if right_half else "left",
        fontsize=style.FONT_SMALL_PT,
        color=style.color("alarm"),
        bbox={"facecolor": style.color("raised"), "linewidth": 0, "pad": 1.5},
    )


def nice_step(span, count):
    """1, 2 or 5 times a power of ten, so that at most COUNT steps fit in SPAN."""
    raw = max(span / count, 1)
    power = 10 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)


def draw_event_axis(canvas, axes, top, event_last):
    step = nice_step(event_last, 4)
    ticks = [tick * step for tick in range(int(event_last / step) + 1)]
    axes.set_xticks(ticks)
    labels = [style.format_count(tick) for tick in ticks]
    axes.set_xticklabels(labels)
    axes.get_xticklabels()[0].set_ha("left")
    if ticks[-1] > 0.95 * event_last:
        axes.get_xticklabels()[-1].set_ha("right")
    canvas.text(
        canvas.width - PLOT_RIGHT_MARGIN,
        top + 21,
        "allocations and frees since the start",
        style.FONT_SMALL_PT,
        ha="right",
        color=style.color("muted"),
    )


# --------------------------------------------------------------------------------------------------
# The map.


def maps_to_draw(runs):
    """The baseline, the best and the last, in the order of the ranking: the largest differences."""
    ranked = [run for run in ranking.rank(runs) if run.memory is not None and run.memory.segments]
    ranked = [run for run in ranked if not ranking.is_limit(run)] or ranked
    if not ranked:
        return []
    baseline = ranking.baseline_of(runs)
    keep = {id(ranked[0]), id(ranked[-1])} | {id(run) for run in ranked if run is baseline}
    for run in ranked:
        if len(keep) >= MAP_COUNT_MAX:
            break
        keep.add(id(run))
    return [run for run in ranked if id(run) in keep]


def stream_names(runs):
    """stream -> a short name. A stream may be known by its handle, which is as long as an
    address: those are counted instead.
    """
    numbers = {
        stream.stream for run in runs if run.memory is not None for stream in run.memory.streams
    }
    numbers |= {
        segment.stream for run in runs if run.memory is not None for segment in run.memory.segments
    }
    numbers = sorted(numbers)
    counted = any(number > STREAM_NUMBER_MAX for number in numbers)
    return {
        number: f"stream{style.NBSP}{index if counted else number:.0f}"
        for index, number in enumerate(numbers)
    }


def map_caption(runs):
    drawn, all_runs = len(maps_to_draw(runs)), len(runs)
    text = (
        "The segments that are held when the replay ends, a row per stream and pool, largest first;"
        " every row is as wide, so equal area is equal memory. Orange between blue is memory that a"
        " larger request cannot use."
    )
    return text + (
        f" {drawn} of {all_runs} configurations: the best, the last and the default."
        if drawn < all_runs
        else ""
    )


def pack(segments, row_bytes):
    """Rows of (stream, pool, [(offset in the row, segment)]): one stream and pool a row, the
    largest segments first.
    """
    groups = {}
    for segment in segments:
        groups.setdefault((segment.stream, segment.pool), []).append(segment)
    rows = []
    for (stream, pool), members in sorted(groups.items()):
        open_rows = []
        for segment in sorted(members, key=lambda member: (-member.size, member.address)):
            row = next((row for row in open_rows if row[0] + segment.size <= row_bytes), None)
            if row is None:
                row = [0, []]
                open_rows.append(row)
            row[1].append((row[0], segment))
            row[0] += segment.size
        rows += [(stream, pool, row[1]) for row in open_rows]
    return rows


def row_width(drawn):
    """Bytes of a row on all panels: the largest segment fits, and no panel gets too many rows."""
    largest = max(segment.size for run in drawn for segment in run.memory.segments)
    total = max(sum(segment.size for segment in run.memory.segments) for run in drawn)
    width = max(largest, total / MAP_ROW_COUNT)
    while (
        max(len(pack(run.memory.segments, width)) for run in drawn) > MAP_ROW_COUNT_MAX
        and width < total
    ):
        width *= 1.25
    return width


def block_runs(placed):
    """state -> [start, end] byte ranges in a row; neighbours of one state are one range."""
    ranges = {}
    for start, segment in placed:
        for offset, size, state in segment.blocks:
            spans = ranges.setdefault(state, [])
            if spans and spans[-1][1] == start + offset:
                spans[-1][1] += size
            else:
                spans.append([start + offset, start + offset + size])
    return ranges


def draw_map(runs, title):
    """A canvas: the final segments and blocks of a few configurations, true to scale."""
    drawn = maps_to_draw(runs)
    width = row_width(drawn)
    packed = [pack(run.memory.segments, width) for run in drawn]
    label_width = 62
    heights = [20 + len(rows) * (MAP_ROW_PT + MAP_GAP_PT) for rows in packed]
    canvas = style.Canvas(style.TITLE_PT + 22 + sum(heights) + 12 * (len(drawn) - 1) + 20)
    top = canvas.title(title)
    pending = any(
        state == "pending"
        for run in drawn
        for segment in run.memory.segments
        for _, _, state in segment.blocks
    )
    key = [("allocated", "allocated", "area"), ("inactive", "idle", "area")]
    if pending:
        key.append(("freed, still in use by a stream", "pending", "area"))
    canvas.key(PLOT_LEFT, top + 10, key)
    names = stream_names(runs)
    top += 22
    plot_width = canvas.width - label_width - PLOT_RIGHT_MARGIN
    for run, rows, height in zip(drawn, packed, heights):
        total = sum(segment.size for segment in run.memory.segments)
        draw_heading(
            canvas,
            top + 11,
            run,
            f"{style.format_bytes(total)} in {style.plural(len(run.memory.segments), 'segment')}",
        )
        axes = canvas.axes(label_width, top + 18, plot_width, height - 20)
        draw_rows(canvas, axes, rows, width, (label_width, top + 18, plot_width), names)
        top += height + 12
    draw_scale(canvas, label_width, top - 4, plot_width, width)
    return canvas


def draw_rows(canvas, axes, rows, width, place, streams):
    """The rows of one panel. PLACE: left, top and width of the plot; STREAMS: the name of each."""
    left, top, plot_width = place
    axes.set_xlim(0, width)
    axes.set_ylim(len(rows) * (MAP_ROW_PT + MAP_GAP_PT), 0)
    axes.axis("off")
    shapes, edges = {"allocated": [], "inactive": [], "pending": []}, []
    before = None
    for index, (stream, pool, placed) in enumerate(rows):
        y0 = index * (MAP_ROW_PT + MAP_GAP_PT)
        y1 = y0 + MAP_ROW_PT
        for state, spans in block_runs(placed).items():
            shapes[state] += [(start, y0, end, y1) for start, end in spans]
        # The border of a segment, unless it would be all that is seen of it.
        edges += [
            (start, y0, start + segment.size, y1)
            for start, segment in placed
            if segment.size / width * plot_width > 3
        ]
        if (stream, pool) != before:
            text = f"{streams[stream]} {pool}" if before is None or before[0] != stream else pool
            canvas.text(
                left - 5,
                top + y1 - 1,
                style.shorten(text, 7, left),
                7,
                ha="right",
                color=style.color("muted"),
            )
            before = (stream, pool)
    names = {"allocated": "allocated", "inactive": "idle", "pending": "pending"}
    for state, boxes in shapes.items():
        if boxes:
            add_boxes(axes, boxes, facecolor=style.color(names[state]), linewidth=0)
    if edges:
        add_boxes(axes, edges, facecolor="none", edgecolor=style.color("plate"), linewidth=0.8)


def add_boxes(axes, boxes, **keywords):
    """One path for all: a thousand patches would take a second to draw."""
    import numpy
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    x0, y0, x1, y1 = numpy.array(boxes, dtype=float).T
    corners = numpy.stack(
        [numpy.stack(pair, axis=1) for pair in ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))],
        axis=1,
    )
    codes = numpy.tile(
        [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(boxes)
    )
    axes.add_patch(PathPatch(Path(corners.reshape(-1, 2), codes), **keywords))


def draw_scale(canvas, left, top, plot_width, width):
    """A bar of a round number of bytes, at most a third of a row."""
    size = 2 ** math.floor(math.log2(width / 3)) if width >= 3 else 1
    axes = canvas.axes(left, top, plot_width, 6)
    axes.axis("off")
    axes.set_xlim(0, width)
    axes.set_ylim(0, 1)
    axes.plot(
        [0, 0, size, size],
        [1, 0.4, 0.4, 1],
        color=style.color("muted"),
        linewidth=0.9,
        clip_on=False,
    )
    canvas.text(
        left + size / width * plot_width + 5,
        top + 6,
        style.format_bytes(size, chosen=True),
        style.FONT_SMALL_PT,
        color=style.color("muted"),
    )
