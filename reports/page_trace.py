"""The section of a trace: its ranking, its pictures, idle cache and self-check."""

from reports import load, memory, ranking, style
from reports.markup import (
    anchor,
    answer,
    breakable,
    caption,
    cell,
    escape,
    heading,
    measured,
    pictures,
    prose,
    table,
    tag,
)
from reports.page_context import first_context

# A table of so few streams fits beside a picture.
IDLE_BESIDE_STREAM_COUNT = 1


def trace_section(results, trace, figures):
    """FIGURES: HTML by key."""
    runs = results.runs_of(trace)
    verdict = ranking.judge(runs)
    parts = [f'<section id="{anchor(results, trace)}">\n<h2>{breakable(trace)}</h2>\n']
    parts.append(f'<p class="facts">{prose(provenance(runs))}</p>\n')
    if len(results.traces) > 1:
        parts.append(answer(verdict.sentence, verdict.choice is None))
    parts += [ranking_table(runs, verdict), ranking_caption(results, runs, verdict)]
    idle = idle_table(runs)
    if figures:
        beside = len(memory.stream_names(runs)) <= IDLE_BESIDE_STREAM_COUNT
        below_map = idle if beside else ""
        parts.append(pictures(figures.get("curves", ""), figures.get("map", "") + below_map))
        idle = "" if beside else idle
    parts += [idle, self_check(runs), "</section>\n"]
    return "".join(parts)


def provenance(runs):
    """One line: where the trace comes from, and how it is replayed."""
    parts = []
    first = next((run.memory for run in runs if run.memory is not None), None)
    if first is not None:
        assumed = " (assumed: the recording does not say)" if first.rules_assumed else ""
        parts += [first.source, f"rules of PyTorch {first.rules}{assumed}"]
    events = max((run.counter("events") or 0 for run in runs), default=0)
    if events:
        parts.append(style.plural(events, "event"))
    if any(run.counter("start_assumed") for run in runs):
        parts.append("the recording begins mid-run: its start state is approximated")
    limit = ranking.baseline_of(runs).limit_bytes
    parts.append("no memory limit" if limit is None else f"limit {style.format_bytes(limit)}")
    return " · ".join(part for part in parts if part)


RANKING_HEAD = [
    "configuration",
    "peak reserved",
    "change",
    f"over{style.NBSP}peak allocated",
    "fragmentation",
    "out of memory",
    "retries",
    "device calls",
    f"host{style.NBSP}time per{style.NBSP}event",
]


MODELLED_HEAD = "device time, modelled"


def ranking_table(runs, verdict):
    ranked = ranking.rank(runs)
    modelled = any(run.counter("modelled_device_s") is not None for run in ranked)
    top = max(run.peak_reserved_bytes for run in ranked) or 1
    rows = []
    for run in ranked:
        cells = [
            ranking_name(run, verdict),
            reserved_cell(run, top),
            change_cell(run, verdict.baseline),
            over_allocated_cell(run),
            measured(run.fragmentation, style.format_percent),
            out_of_memory_cell(run),
            measured(run.counter("retries"), style.format_count),
            measured(run.device_calls, style.format_count),
            measured(run.counter("ns_per_event"), style.format_ns),
        ]
        cells += [modelled_cell(run)] if modelled else []
        rows.append(("best" if run is verdict.choice else "", "".join(cells)))
    head = RANKING_HEAD + ([MODELLED_HEAD] if modelled else [])
    return table(head, rows, "Ranking of configurations")


def ranking_name(run, verdict):
    tags = tag("run this", "good") if run is verdict.choice else ""
    if ranking.is_limit(run):
        tags += tag("limit: no cache")
    if run.recorded:
        tags += tag("as recorded")
    setting = run.config if run.config and run.config != run.config_name else ""
    line = f'<code class="setting">{breakable(setting)}</code>' if setting else ""
    if ranking.limit_differs(run, verdict.baseline):
        line += f'<span class="setting">{escape(ranking.limit_text(run))}</span>'
    return heading(f"{breakable(run.config_name)}{tags}{line}")


def reserved_cell(run, top):
    """The number above a bar on the scale of the whole table: allocated, and what is reserved
    beyond it.
    """
    used = min(run.peak_allocated_bytes, run.peak_reserved_bytes)
    bar = (
        '<span class="bar" aria-hidden="true"><i class="a"'
        f' style="width:{100 * used / top:.1f}%"></i><i class="i"'
        f' style="width:{100 * (run.peak_reserved_bytes - used) / top:.1f}%"></i></span>'
    )
    return cell(style.format_bytes(run.peak_reserved_bytes), run.peak_reserved_bytes, extra=bar)


def modelled_cell(run):
    """The typical time above the range that the published figures leave."""
    keys = ("modelled_device_s", "modelled_device_low_s", "modelled_device_high_s")
    typical, low, high = (run.counter(key) for key in keys)
    if typical is None:
        return cell("–")
    extra = ""
    if low is not None and high is not None:
        spread = f"{style.format_ns(low * 1e9)} to {style.format_ns(high * 1e9)}"
        extra = f'<span class="setting">{escape(spread)}</span>'
    return cell(style.format_ns(typical * 1e9), typical, extra=extra)


def change_cell(run, baseline):
    relative = ranking.change(run, baseline)
    if run is baseline or relative is None:
        return cell("–")
    return cell(style.format_percent(relative, True), relative, heat=relative)


def over_allocated_cell(run):
    if run.peak_allocated_bytes == 0:
        return cell("–")
    ratio = run.peak_reserved_bytes / run.peak_allocated_bytes
    return cell(style.format_ratio(ratio), ratio)


def out_of_memory_cell(run):
    if not run.out_of_memory:
        return cell("no")
    if run.failed_as_recorded:
        return cell("as recorded", classes="bad")
    event = run.out_of_memory_event
    return cell("yes" if event is None else f"at event {style.format_count(event)}", event, "bad")


def ranking_caption(results, runs, verdict):
    device = "simulated" if first_context(results).get("cuda") == "simulator" else "of a GPU"
    text = (
        f"Best first, by peak reserved memory; change is against `{verdict.baseline.config_name}`."
        " The bar is peak allocated (blue: sizes as the setting rounds them) and what is reserved"
        " beyond it (orange). Fragmentation is 1 − peak allocated / peak reserved. An event is an"
        " allocation or a free; host time is measured over one replay on this machine, device"
        f" calls ({device}) included. After the settings stand runs without a cache, then those"
        " that ran out of memory."
    )
    if any(run.counter("modelled_device_s") is not None for run in runs):
        text += (
            " Device time is modelled, not measured: what the device calls would cost by published"
            " figures, with the range that these leave."
        )
    if any(run.failed_as_recorded for run in runs):
        text += (
            " As recorded: requests failed that had failed in the recording, and the run went on."
        )
    source = load.REPLAY_FILE if any(run.counters for run in runs) else load.MEMORY_FILE
    return caption(prose(text), source)


def idle_table(runs):
    """Cached memory that is not in use, a stream a column: it cannot serve another stream."""
    ranked = [run for run in ranking.rank(runs) if run.memory is not None and run.memory.streams]
    numbers = sorted({stream.stream for run in ranked for stream in run.memory.streams})
    if not numbers:
        return ""
    names = memory.stream_names(runs)
    rows = []
    for run in ranked:
        by_number = {stream.stream: stream for stream in run.memory.streams}
        cells = [heading(escape(run.config_name))]
        for number in numbers:
            stream = by_number.get(number)
            cells.append(measured(stream and stream.peak_idle_bytes, style.format_bytes))
            cells.append(measured(stream and stream.idle_bytes, style.format_bytes))
        rows.append("".join(cells))
    head = ["configuration"] + [
        f"{names[number]}, {when}" for number in numbers for when in ("peak", "at the end")
    ]
    title = "Idle cache per stream"
    text = (
        "Reserved and not allocated; what one stream keeps, another cannot use. Streams peak at"
        f" different times, so peaks do not add up.{handles(names)}"
    )
    return f"<h3>{title}</h3>\n" + table(head, rows, title) + caption(text, load.MEMORY_FILE)


def handles(names):
    """Which handle a counted stream has."""
    renamed = [
        f"{name} is {number:.0f}"
        for number, name in names.items()
        if not name.endswith(f"{style.NBSP}{number:.0f}")
    ]
    return f" As recorded, {', '.join(renamed)}." if renamed else ""


SELF_CHECK_TEXT = {
    "blocks": "block addresses",
    "segments": "segments",
    "releases": "releases",
    "layout": "parts of the final layout",
}


def self_check(runs):
    """How far the replay under the recorded configuration equals the recording."""
    with_memory = [run for run in runs if run.memory is not None]
    checked = [run for run in with_memory if run.memory.self_check is not None]
    if with_memory and not checked:
        text = "the configuration of the recording is not among these runs"
        return f'<p class="caption">Self-check: not done; {text}.</p>\n'
    return "".join(self_check_line(run) for run in checked)


def self_check_line(run):
    check = run.memory.self_check
    counts = []
    for key, text in SELF_CHECK_TEXT.items():
        equal, total = check[key]
        counts.append(f"{style.format_count(equal)} of {style.format_count(total)} {text}")
    verdict = '<b class="bad">✗ differs from the recording</b>'
    if check["exact"]:
        verdict = '<b class="good">✓ equal to the recording</b>'
    difference = check["first_difference"]
    difference = f" First difference: {escape(difference)}." if difference else ""
    return (
        f'<p class="caption">Self-check under <code>{escape(run.config_name)}</code>: {verdict}'
        f" ({', '.join(counts)}).{difference}</p>\n"
    )
