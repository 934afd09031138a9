"""Programs that use memory as models do, under settings: the sentence about each, and the picture of
all: memory, and the time of a step with what the allocator adds to it.
"""

import dataclasses

from reports import style
from reports.ranking import BASELINE, is_limit

ROW_PT, GROUP_HEAD_PT, BAR_PT = 12, 20, 7
LABEL_PT, NUMBER_PT, GAP_PT = 54, 46, 8
# A longer bar is cut: one setting without a cache would leave no room for the others.
STEP_MAX = 2.0


@dataclasses.dataclass
class Group:
    """One program under all settings."""

    program: str
    runs: list  # of Workload, in the order of the file

    @property
    def done(self):
        return [run for run in self.runs if not run.out_of_memory]

    @property
    def baseline(self):
        """What others are measured by: the default, else the first that had enough memory."""
        named = [run for run in self.done if run.config_name == BASELINE]
        return (named or self.done or [None])[0]

    @property
    def sentence(self):
        base = self.baseline
        if base is None:
            return f"`{self.program}` runs out of memory under every setting."
        text = (
            f"`{self.program}`: a step takes {style.format_ns(base.mean_ns)} on average under"
            f" `{base.config_name}`, {style.format_ns(base.counter('stall_ns'))} of it inside the"
            " allocator"
        )
        caching = [run for run in self.done if not is_limit(run)]
        if len(caching) > 1:
            fast, slow = (end(caching, key=lambda run: run.mean_ns) for end in (min, max))
            small, large = (end(caching, key=reserved) for end in (min, max))
            text += between("with a cache", fast, slow, lambda run: style.format_ns(run.mean_ns))
            text += between("reserved", small, large, lambda run: style.format_bytes(reserved(run)))
        if len(self.done) < len(self.runs):
            failed = [f"`{run.config_name}`" for run in self.runs if run.out_of_memory]
            text += f"; out of memory under {', '.join(failed)}"
        return text + "."


def reserved(run):
    return run.counter("peak_reserved_bytes")


def between(what, low, high, form):
    if form(low) == form(high):
        return f"; {what}: {form(low)} under all"
    return f"; {what}: from {form(low)} (`{low.config_name}`) to {form(high)} (`{high.config_name}`)"


def groups(workloads):
    """A Group for each program, in the order of the file."""
    found = {}
    for run in workloads:
        found.setdefault(run.program, []).append(run)
    return [Group(program, runs) for program, runs in found.items()]


def times(run, baseline):
    """A step's time over the baseline's; None where there is nothing to compare."""
    if run.out_of_memory or baseline is None or baseline.mean_ns == 0:
        return None
    return run.mean_ns / baseline.mean_ns


def is_modelled(workloads):
    return any(run.modelled for run in workloads)


def caption(workloads):
    text = (
        "Left: peak reserved memory, blue what was handed out, orange the rest. Right: the mean of"
        " steps behind the first, over the default's; "
    )
    if is_modelled(workloads):
        return text + (
            "vermilion: inside the allocator while no device had anything to do. Step times are"
            " *modelled*."
        ).replace("*", "")
    return text + "vermilion: inside the allocator. Step times are measured."


def draw(workloads, title):
    """A canvas: a group a program, a row a setting."""
    drawn = groups(workloads)
    top = style.TITLE_PT + 18
    height = top + sum(GROUP_HEAD_PT + ROW_PT * len(group.runs) for group in drawn) + 10
    canvas = style.Canvas(height)
    canvas.title(title)
    width = (canvas.width - LABEL_PT - 2 * NUMBER_PT - GAP_PT - 2 * style.MARGIN_PT) / 2
    left = style.MARGIN_PT + LABEL_PT
    right = left + width + NUMBER_PT + GAP_PT
    muted = {"color": style.color("muted")}
    canvas.text(left, style.TITLE_PT + 12, "peak reserved", style.FONT_SMALL_PT, **muted)
    kind = ", modelled" if is_modelled(workloads) else ""
    canvas.text(right, style.TITLE_PT + 12, f"step{kind}", style.FONT_SMALL_PT, **muted)
    axes = canvas.axes(0, 0, canvas.width, canvas.height)
    axes.axis("off")
    axes.set_xlim(0, canvas.width)
    axes.set_ylim(canvas.height, 0)
    for group in drawn:
        canvas.text(style.MARGIN_PT, top + 13, group.program, style.FONT_SMALL_PT, weight="bold")
        top += GROUP_HEAD_PT
        for run in group.runs:
            name = style.shorten(run.config_name, 7.5, LABEL_PT - 4)
            canvas.text(left - 4, top + BAR_PT + 0.5, name, 7.5, ha="right")
            if run.out_of_memory:
                canvas.text(left, top + BAR_PT + 0.5, "out of memory", 7.5, color=style.color("alarm"))
            else:
                draw_memory(canvas, axes, (left, top, width), run, group)
                draw_step(canvas, axes, (right, top, width), run, group)
            top += ROW_PT
    return canvas


def bar(axes, left, top, width, name):
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle((left, top), max(width, 0), BAR_PT, facecolor=style.color(name), linewidth=0)
    )


def draw_memory(canvas, axes, box, run, group):
    """BOX: left, top and width."""
    left, top, width = box
    most = max(reserved(other) for other in group.done)
    total = width * reserved(run) / most
    used = total * min(1, run.counter("peak_allocated_bytes") / reserved(run))
    bar(axes, left, top, total, "idle")
    bar(axes, left, top, used, "allocated")
    canvas.text(left + width + 4, top + BAR_PT, style.format_bytes(reserved(run)), 7.5)


def draw_step(canvas, axes, box, run, group):
    left, top, width = box
    relative = times(run, group.baseline)
    shown = min(relative, STEP_MAX) / STEP_MAX * width
    stalled = run.counter("dry_ns" if run.modelled else "stall_ns") / run.mean_ns
    bar(axes, left, top, shown, "limit")
    bar(axes, left, top, shown * min(1, stalled), "alarm")
    cut = "" if relative <= STEP_MAX else "… "
    canvas.text(left + width + 4, top + BAR_PT, cut + style.format_ratio(relative), 7.5)
