"""What the commands print at the end: the answers of the page, as plain text of terminal width.

Which setting is best, what it saves, and the sentences that say so are the page's own
(reports/ranking.py); here they are only laid out. Numbers are formatted as on the page too.
"""

import re
import textwrap

from bench import runner
from reports import host_cost, load, ranking, replay_speed, style, workloads

WIDTH = 96
GAP = "  "
DASH = "-"
PLAIN = {style.NBSP: " ", style.MINUS: "-", "×": "x", "→": "->", "µ": "u", "–": DASH, "`": ""}


def plain(text):
    """The page's text in ASCII."""
    text = re.sub(f"(?<=[0-9]){style.THIN}(?=[0-9])", ",", text).replace(style.THIN, "")
    for character, replacement in PLAIN.items():
        text = text.replace(character, replacement)
    return text


def size_text(size):
    return plain(style.format_bytes(size))


def paragraph(text):
    """Lines that break where the page may break, so never between a number and its unit."""
    return [plain(line) for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False)]


def table(head, rows):
    """Aligned lines. A heading that ends in "<" stands over texts, the others over numbers."""
    left = [text.endswith("<") for text in head]
    lines = [[text.rstrip("<") for text in head]] + [[plain(text) for text in row] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    shown = []
    for line in lines:
        texts = [
            text.ljust(width) if is_left else text.rjust(width)
            for text, width, is_left in zip(line, widths, left)
        ]
        shown.append((GAP + GAP.join(texts)).rstrip())
    return shown


def settings_lines(results):
    """The setting to run: for each trace, and one for all of them."""
    if not results.runs:
        return []
    if len(results.traces) == 1:
        return paragraph(ranking.answer(results))
    return choices(results) + [""] + settings(results) + [""] + paragraph(ranking.answer(results))


def choices(results):
    verdicts = {trace: ranking.judge(results.runs_of(trace)) for trace in results.traces}
    baselines = {verdict.baseline.config_name for verdict in verdicts.values()}
    beside = baselines.pop() if len(baselines) == 1 else "the baseline"
    head = ["trace<", "run this<", "peak reserved", f"under {beside}", "saved", "<"]
    rows = [choice_row(trace, verdict) for trace, verdict in verdicts.items()]
    return ["The setting to run for each trace, by peak reserved memory:"] + table(head, rows)


def choice_row(trace, verdict):
    baseline, choice = verdict.baseline, verdict.choice
    base = style.format_bytes(baseline.peak_reserved_bytes)
    if baseline.out_of_memory:
        base = "out of memory"
    if choice is None:
        return [trace, "none finishes", DASH, base, DASH, ""]
    saved, limit = DASH, ""
    if verdict.saved_bytes:
        saved = style.format_percent(verdict.saved_bytes / baseline.peak_reserved_bytes)
    if ranking.limit_differs(choice, baseline):
        limit = f"process {ranking.limit_text(choice)}"
    peak = style.format_bytes(choice.peak_reserved_bytes)
    return [trace, choice.config_name, peak, base, saved, limit]


def settings(results):
    """Every setting over all traces, best first."""
    compared = ranking.compare_all(results)
    failed = any(overall.out_of_memory_count for overall in compared)
    head = ["setting<", "peak reserved", "near the best", "host/event"]
    head += (["out of memory"] if failed else []) + ["configuration<"]
    title = (
        f"Settings over all {len(results.traces)} traces. Peak reserved: as a multiple of"
        f" {ranking.BASELINE}'s, geometric mean. Near the best: within {ranking.WORTHWHILE_TEXT} of"
        " the best setting's peak. Event: an allocation or a free."
    )
    return paragraph(title) + table(head, [setting_row(results, one, failed) for one in compared])


def setting_row(results, overall, failed):
    runs = [run for run in results.runs if run.config_name == overall.config_name]
    mean, failures, count = overall.mean_change, overall.out_of_memory_count, overall.trace_count
    row = [
        overall.config_name,
        DASH if mean is None else f"{1 + mean:.3f}x",
        DASH if overall.limit else f"in {overall.near_best_count} of {count}",
        host_time(runs),
    ]
    if failed:
        row.append(f"in {failures} of {count}" if failures else "no")
    return row + [configuration_text(runs, overall.limit, len(results.traces))]


def configuration_text(runs, limit, trace_count):
    texts = {run.config for run in runs}
    text = (texts.pop() or "PyTorch's defaults") if len(texts) == 1 else "one for each trace"
    if len(runs) < trace_count:
        text += f" (only {len(runs)} of {trace_count} traces)"
    return text + (" (no cache: a limit)" if limit else "")


def host_time(runs):
    """Of one event, over all events of RUNS."""
    events = sum(run.counter("events") or 0 for run in runs)
    if not events or any(run.counter("ns_per_event") is None for run in runs):
        return DASH
    total_ns = sum(run.counter("ns_per_event") * run.counter("events") for run in runs)
    return style.format_ns(total_ns / events)


def host_cost_lines(results):
    """What a cache hit costs, beside the limits."""
    rows = []
    for (pattern, size), members in host_cost.group(results.host_costs).items():
        times = {cost.subject: style.format_ns(cost.real_ns) for cost in members}
        caching = next((cost for cost in members if cost.subject == "caching"), None)
        quotient = host_cost.ratio(caching, members, "mutex_list") if caching else None
        row = [host_cost.group_text(pattern, size)]
        row += [times.get(subject, DASH) for subject in host_cost.SUBJECTS]
        rows.append(row + [DASH if quotient is None else style.format_ratio(quotient)])
    if not rows:
        return []
    head = ["pattern<", *host_cost.SUBJECTS.values(), "caching over one-mutex"]
    title = "Host time of an allocation and its free; ideal list and one-mutex list are limits:"
    return [title] + table(head, rows)


def replay_speed_lines(results):
    return [line for trace in replay_speed.traces(results) for line in paragraph(trace.sentence)]


def workloads_lines(results):
    groups = workloads.groups(results.workloads)
    return [line for group in groups for line in paragraph(group.sentence)]


def read(folder):
    try:
        return load.load(folder)
    except load.ResultError as error:
        raise runner.Stop(2, str(error)) from None


def replay_lines(folder):
    return settings_lines(read(folder))


def all_lines(folder):
    """All that the folder has, with an empty line before each part."""
    results, shown = read(folder), []
    for part in (settings_lines, workloads_lines, host_cost_lines, replay_speed_lines):
        added = part(results)
        shown += [""] + added if added else []
    return shown
