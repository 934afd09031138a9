"""Pictures of the host cost of an allocation and its free, beside the limits measured in the same
run.

Two views of the same benchmarks: the mean time of one allocation and its free, measured over many
in a row, and the spread of single pairs, each timed alone (so with the cost of reading the clock in
it). Grey is a limit, blue the caching allocator.
"""

import math

from reports import style

SUBJECTS = {
    "ideal_list": "ideal list",
    "mutex_list": "one-mutex list",
    "caching": "caching",
    "direct": "direct",
    "async": "async",
}
LIMITS = ("ideal_list", "mutex_list")
# Beyond this factor between the longest and the shortest, short bars could not be told apart on a
# linear axis.
LINEAR_RANGE = 20

BARS_CAPTION = (
    "One allocation and its free, over many in a row. Grey bars are limits measured in the same"
    " run; the number on the right is the time over that of the one-mutex list."
)
TWO_THREADS_CAPTION = (
    "One allocation and its free in each of two threads that run at once, on one stream or each on"
    " its own. Grey is one list under one mutex that both use."
)
SPREAD_CAPTION = (
    "One allocation and its free, each pair timed alone: the dot is the median, the thick line ends"
    " at p99, the thin one at p99.9. The shaded part is what reading the clock takes."
)

ROW_PT, GROUP_HEAD_PT = 14, 18
LABEL_PT = 70
COLUMNS_PT = 94
PLOT_TOP_PT = style.TITLE_PT + 2


def group(costs):
    """(pattern, size) -> costs in the order of SUBJECTS, unknown subjects last."""
    groups = {}
    for cost in costs:
        groups.setdefault((cost.pattern, cost.size), []).append(cost)
    rank = {subject: index for index, subject in enumerate(SUBJECTS)}
    for members in groups.values():
        members.sort(
            key=lambda cost: (rank.get(cost.subject, len(rank)), cost.subject, cost.streams)
        )
    return groups


def subject_text(cost):
    text = SUBJECTS.get(cost.subject, cost.subject)
    return (
        text + {"own_streams": ", 2 streams", "one_stream": ", 1 stream"}.get(cost.streams, "")
        if cost.subject not in LIMITS
        else text
    )


def group_text(pattern, size):
    if size.isdigit():
        return f"{pattern}, {style.format_bytes(int(size), chosen=True)}"
    return pattern if size == pattern else f"{pattern}, {size}"


def ratio(cost, costs, subject):
    """Time over that of a limit in the same group; None without it. The run's own figure is the
    steadier one, where it has one.
    """
    if subject == "mutex_list" and cost.times_mutex is not None:
        return cost.times_mutex
    limit = next((other for other in costs if other.subject == subject), None)
    return None if limit is None or limit.real_ns == 0 else cost.real_ns / limit.real_ns


def bar_color(subject):
    return style.color("limit" if subject in LIMITS else "allocated")


def sentence(costs):
    """What a cache hit costs against the limits, for the slowest and the fastest pattern."""
    rows = []
    for (pattern, size), members in group(costs).items():
        caching = next((cost for cost in members if cost.subject == "caching"), None)
        times = ratio(caching, members, "mutex_list") if caching else None
        if times is not None:
            rows.append((times, caching, group_text(pattern, size)))
    if not rows:
        return "The result has no caching allocator and one-mutex list side by side."
    low, high = min(rows, key=lambda row: row[0]), max(rows, key=lambda row: row[0])
    text = (
        f"An allocation and its free from the cache take {style.format_ratio(low[0])} the time of a"
        f" free list under one mutex in {low[2]} ({style.format_ns(low[1].real_ns)})"
    )
    if high is not low:
        text += (
            f", and {style.format_ratio(high[0])} in {high[2]} ({style.format_ns(high[1].real_ns)})"
        )
    return text + "."


def layout(groups, title):
    """(canvas, [(group, members, top of its heading)], bottom, width of the labels)"""
    top, places = style.TITLE_PT + 6, []
    for key, members in groups.items():
        places.append((key, members, top))
        top += GROUP_HEAD_PT + ROW_PT * len(members) + 4
    labels = max(
        style.text_width(subject_text(cost), style.FONT_SMALL_PT)
        for members in groups.values()
        for cost in members
    )
    canvas = style.Canvas(top + 26)
    canvas.title(title)
    return canvas, places, top, max(labels + 8, LABEL_PT)


def time_axis(canvas, top, left, low, high):
    """Axes over the whole height, in ns; logarithmic when the range demands it."""
    axes = canvas.axes(left, PLOT_TOP_PT, canvas.width - left - COLUMNS_PT, top - PLOT_TOP_PT)
    axes.set_ylim(top - PLOT_TOP_PT, 0)
    axes.set_yticks([])
    logarithmic = low > 0 and high / low > LINEAR_RANGE
    if logarithmic:
        start, end = 10 ** math.floor(math.log10(low)), high * 1.15
        axes.set_xscale("log")
        axes.set_xlim(start, end)
        ticks = [
            10**power for power in range(round(math.log10(start)), math.floor(math.log10(end)) + 1)
        ]
    else:
        axes.set_xlim(0, high * 1.02 or 1)
        step = nice_time(high)
        ticks = [step * index for index in range(int(high * 1.02 / step) + 1)]
    axes.set_xticks(ticks)
    axes.set_xticks([], minor=True)
    axes.set_xticklabels([style.format_ns(tick, chosen=True) if tick else "0" for tick in ticks])
    axes.grid(axis="x", color=style.color("grid"), linewidth=0.6)
    axes.set_axisbelow(True)
    return axes, logarithmic


def nice_time(high):
    raw = high / 4 or 1
    power = 10 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)


def columns(canvas, top, first, second, **keywords):
    """Two numbers at the right end of a row."""
    canvas.text(canvas.width - 46, top, first, style.FONT_SMALL_PT, ha="right", **keywords)
    canvas.text(canvas.width - 4, top, second, style.FONT_SMALL_PT, ha="right", **keywords)


def axis_text(canvas, top, text, logarithmic):
    canvas.text(
        canvas.width - 8,
        top + 22,
        text + (", log axis" if logarithmic else ""),
        style.FONT_SMALL_PT,
        ha="right",
        color=style.color("muted"),
    )


def draw_bars(costs, title):
    """A canvas: mean time of one allocation and its free, as bars beside their limits."""
    groups = group(costs)
    canvas, places, top, left = layout(groups, title)
    times = [cost.real_ns for cost in costs]
    axes, logarithmic = time_axis(canvas, top, left, min(times), max(times))
    start = axes.get_xlim()[0]
    for (pattern, size), members, group_top in places:
        canvas.text(8, group_top + 10, group_text(pattern, size), weight="bold")
        for index, cost in enumerate(members):
            y = group_top + GROUP_HEAD_PT + ROW_PT * index
            axes.barh(
                y + ROW_PT / 2 - PLOT_TOP_PT,
                cost.real_ns - start,
                left=start,
                height=ROW_PT - 4,
                color=bar_color(cost.subject),
            )
            canvas.text(left - 6, y + 9.5, subject_text(cost), style.FONT_SMALL_PT, ha="right")
            times_text = ratio(cost, members, "mutex_list")
            columns(
                canvas,
                y + 9.5,
                style.format_ns(cost.real_ns),
                "" if times_text is None else style.format_ratio(times_text),
            )
    columns(canvas, PLOT_TOP_PT + 14, "mean", "×mutex", color=style.color("muted"))
    axis_text(canvas, top, "one allocation and its free, mean", logarithmic)
    return canvas


def draw_spread(costs, title):
    """A canvas: p50 to p99 of single pairs, p99.9 as the end of a thin line."""
    groups = group(costs)
    canvas, places, top, left = layout(groups, title)
    low = min(cost.percentiles_ns["p50"] for cost in costs)
    high = max(cost.percentiles_ns["p999"] for cost in costs)
    axes, logarithmic = time_axis(canvas, top, left, low, high)
    clocks = [cost.clock_ns for cost in costs if cost.clock_ns]
    if clocks:
        axes.axvspan(axes.get_xlim()[0], max(clocks), color=style.color("raised"), linewidth=0)
    for (pattern, size), members, group_top in places:
        canvas.text(8, group_top + 10, group_text(pattern, size), weight="bold")
        for index, cost in enumerate(members):
            y = group_top + GROUP_HEAD_PT + ROW_PT * index
            draw_spread_row(axes, cost, y + ROW_PT / 2 - PLOT_TOP_PT)
            canvas.text(left - 6, y + 9.5, subject_text(cost), style.FONT_SMALL_PT, ha="right")
            columns(
                canvas,
                y + 9.5,
                *(style.format_ns(cost.percentiles_ns[name]) for name in ("p50", "p99")),
            )
    columns(canvas, PLOT_TOP_PT + 14, "p50", "p99", color=style.color("muted"))
    axis_text(canvas, top, "one pair: p50 to p99, thin to p99.9", logarithmic)
    return canvas


def draw_spread_row(axes, cost, y):
    values = cost.percentiles_ns
    tint = bar_color(cost.subject)
    axes.plot([values["p50"], values["p999"]], [y, y], color=tint, linewidth=1)
    axes.plot(
        [values["p50"], values["p99"]], [y, y], color=tint, linewidth=4, solid_capstyle="butt"
    )
    axes.plot([values["p50"]], [y], color=tint, marker="o", markersize=5)
