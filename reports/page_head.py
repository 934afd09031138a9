"""The head of a page: which setting to run, and all traces under all configurations at a glance."""

from reports import host_cost, load, overview, ranking, replay_speed, style, workloads
from reports.markup import anchor, answer, breakable, caption, cell, escape, heading, prose, table
from reports.page_context import first_context

NOTE_COUNT_MAX = 8


def head(results, note):
    """NOTE: a sentence of the caller's, or empty."""
    question = "Which allocator setting should I run?"
    if not results.runs:
        question = "What does an allocation cost on the host?"
        if results.workloads:
            question = "What do allocator settings do to a program?"
    parts = [f"<h1>{question}</h1>\n", f'<p class="facts">{prose(facts(results))}</p>\n']
    parts.append(notes(([note] if note else []) + results.notes))
    if results.runs:
        failed = all(run.out_of_memory for run in results.runs)
        parts.append(answer(ranking.answer(results), failed))
    else:
        text = " ".join(trace.sentence for trace in replay_speed.traces(results))
        if results.host_costs:
            text = host_cost.sentence(results.host_costs)
        elif results.workloads:
            text = " ".join(group.sentence for group in workloads.groups(results.workloads))
        text += " No recording was replayed under settings, so no setting can be named."
        parts.append(answer(text.strip()))
    if len(results.traces) > 1:
        parts.append(overview_table(results))
    return "".join(parts)


def notes(texts):
    if not texts:
        return ""
    shown = texts[:NOTE_COUNT_MAX]
    if len(texts) > len(shown):
        shown.append(f"{len(texts) - len(shown)} more of this kind.")
    items = "".join(f"<li>{prose(text)}</li>" for text in shown)
    title = "These results are incomplete or do not agree:"
    return f'<div class="note" role="note"><b>{title}</b><ul>{items}</ul></div>\n'


def facts(results):
    """One line: how much was compared, on what, and when."""
    parts = []
    if results.runs:
        traces, names = len(results.traces), len(ranking.config_names(results))
        parts.append(f"{style.plural(traces, 'trace')} × {style.plural(names, 'configuration')}")
    context = first_context(results)
    simulated = context.get("cuda") == "simulator"
    where = "a simulated device" if simulated else context.get("device", "an unnamed device")
    parts.append(f"on {where}")
    if context.get("date"):
        parts.append(str(context["date"]).replace("T", " ")[:16])
    version, commit = context.get("tidemark_version", ""), context.get("tidemark_commit", "")
    parts.append(f"Tidemark {version} {commit}".strip())
    return " · ".join(parts)


def overview_table(results):
    names = overview.columns(results)
    limits = {run.config_name for run in results.runs if ranking.is_limit(run)}
    rows = []
    for trace in results.traces:
        runs = {run.config_name: run for run in results.runs_of(trace)}
        verdict = ranking.judge(list(runs.values()))
        cells = [
            heading(f'<a href="#{anchor(results, trace)}">{breakable(trace)}</a>'),
            choice_cell(verdict),
        ]
        cells += [overview_cell(runs.get(name), verdict) for name in names]
        rows.append("".join(cells))
    heads = [f"{name} (limit)" if name in limits else name for name in names]
    text = (
        f"Peak reserved memory: bytes under <code>{escape(ranking.BASELINE)}</code>, the others"
        " relative to it. Blue is less, orange is more; bold is the setting to run. Settings are"
        " ordered by their mean over the traces."
        f"{' A limit is a run without a cache: no setting to run.' if limits else ''}"
        ' As a picture: <a href="figures/overview.png">overview.png</a>.'
    )
    source = load.REPLAY_FILE if load.REPLAY_FILE in results.contexts else load.MEMORY_FILE
    label = "Peak reserved memory relative to the default"
    return table(["trace", "run this<"] + heads, rows, label) + caption(text, source)


def choice_cell(verdict):
    if verdict.choice is None:
        return cell("none finishes", classes="text bad")
    saved = verdict.saved_bytes or None
    line = ""
    if saved:
        line = f'<span class="setting">saves {escape(style.format_bytes(saved))}</span>'
    return cell(verdict.choice.config_name, saved, classes="text", extra=line)


def overview_cell(run, verdict):
    text, relative = overview.cell(run, verdict.baseline)
    if run is None:
        return cell(text)
    if run.out_of_memory:
        return cell("out of memory", classes="bad")
    classes = "chosen" if run is verdict.choice else ""
    return cell(text, run.peak_reserved_bytes, classes, relative)
