"""The text of a page: sections and tables, as HTML that needs no script and nothing from outside.

Every measured number in a table carries its exact value (data-value), so that what is printed can be checked and copied.
"""

import html
import os
import re

from reports import host_cost, load, memory, overview, ranking, style

NOTE_COUNT_MAX = 8
# A table of so few streams fits beside a picture.
IDLE_BESIDE_STREAM_COUNT = 1
CSS_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.css")


def escape(text):
    return html.escape(str(text), quote=True)


def prose(text):
    """Escaped text; what stands in backticks is a name."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def cell(text, value=None, classes="", css="", extra=""):
    """A table cell; VALUE is the exact number behind the text, EXTRA is HTML below it."""
    attributes = f' class="{classes}"' if classes else ""
    attributes += f' data-value="{value!r}"' if value is not None else ""
    attributes += f' style="{css}"' if css else ""
    return f"<td{attributes}>{escape(text)}{extra}</td>"


def measured(value, formatted):
    """A cell with a number, or a dash where no file tells it."""
    return cell("–") if value is None else cell(formatted(value), value)


def table(head, rows, label):
    """HEAD: texts, over text rather than numbers if they end in "<"; ROWS: (class, HTML of cells)."""
    heads = "".join(f'<th scope="col" class="text">{escape(text[:-1])}</th>' if text.endswith("<") else
                    f'<th scope="col">{escape(text)}</th>' for text in head)
    body = "".join(f'<tr class="{name}">{cells}</tr>\n' if name else f"<tr>{cells}</tr>\n" for name, cells in rows)
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
            f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n")


def anchor(trace):
    return "trace-" + re.sub(r"[^A-Za-z0-9_.-]+", "-", trace)


def tag(text, classes=""):
    return f'<span class="tag {classes}">{escape(text)}</span>'


# ------------------------------------------------------------------------------------------------------
# The head: what to run.


def head(results, note):
    question = "Which allocator setting should I run?" if results.runs else "What does an allocation cost on the host?"
    parts = [f"<h1>{question}</h1>\n", f'<p class="facts">{prose(facts(results))}</p>\n']
    notes = ([note] if note else []) + results.notes
    if notes:
        shown = notes[:NOTE_COUNT_MAX]
        if len(notes) > len(shown):
            shown.append(f"{len(notes) - len(shown)} more of this kind.")
        items = "".join(f"<li>{prose(text)}</li>" for text in shown)
        parts.append(f'<div class="note" role="note"><b>These results are incomplete or do not agree:</b><ul>{items}</ul></div>\n')
    if results.runs:
        failed = all(run.out_of_memory for run in results.runs)
        parts.append(f'<p class="answer{" failed" if failed else ""}">{prose(ranking.answer(results))}</p>\n')
        if len(results.traces) > 1:
            parts.append(overview_table(results))
    else:
        parts.append(f'<p class="answer">{prose(host_cost.sentence(results.host_costs))} '
                     f"No trace was replayed, so no setting can be named.</p>\n")
    return "".join(parts)


def facts(results):
    """One line: how much was compared, and on what."""
    parts = []
    if results.runs:
        names = ranking.config_names(results)
        parts.append(f"{style.plural(len(results.traces), 'trace')} × {style.plural(len(names), 'configuration')}")
    context = first_context(results)
    where = "a simulated device" if context.get("cuda") == "simulator" else context.get("device", "an unnamed device")
    parts.append(f"on {where}")
    if context.get("date"):
        parts.append(str(context["date"]).replace("T", " ")[:16])
    parts.append(f"Tidemark {context.get('tidemark_version', '')} {context.get('tidemark_commit', '')}".strip())
    return " · ".join(parts)


def first_context(results):
    return next(iter(results.contexts.values()))


def overview_table(results):
    names = overview.columns(results)
    rows = []
    for trace in results.traces:
        runs = {run.config_name: run for run in results.runs_of(trace)}
        verdict = ranking.judge(list(runs.values()))
        rows.append(("", f'<th scope="row"><a href="#{anchor(trace)}">{escape(trace)}</a></th>' + choice_cell(verdict) +
                     "".join(overview_cell(runs.get(name), verdict) for name in names)))
    source = "replay.json" if load.REPLAY_FILE in results.contexts else load.MEMORY_FILE
    return (table(["trace", "run this<"] + names, rows, "Peak reserved memory relative to the default") +
            f'<p class="caption">Peak reserved memory: bytes under <code>{escape(ranking.BASELINE)}</code>, the others relative to it. '
            f"Blue is less, orange is more; bold is the setting to run. Settings are ordered by their mean over the traces. "
            f"Source: {source}. As a picture: <a href=\"figures/overview.png\">overview.png</a>.</p>\n")


def choice_cell(verdict):
    if verdict.choice is None:
        return cell("none finishes", classes="text bad")
    saved = verdict.saved_bytes
    text = f"{verdict.choice.config_name}"
    if saved:
        text += f" (saves {style.format_bytes(saved)})"
    return cell(text, saved or None, classes="text")


def overview_cell(run, verdict):
    text, relative = overview.cell(run, verdict.baseline)
    classes = "bad" if run is not None and run.out_of_memory else ""
    css = style.heat_css(relative) if relative else ""
    if run is not None and run is verdict.choice:
        css = (css + ";" if css else "") + "font-weight:700"
    value = None if run is None or run.out_of_memory else run.peak_reserved_bytes
    return cell("out of memory" if classes else text, value, classes, css)


# ------------------------------------------------------------------------------------------------------
# A trace.


def trace_section(results, trace, pictures):
    """PICTURES: figure HTML by name."""
    runs = results.runs_of(trace)
    verdict = ranking.judge(runs)
    parts = [f'<section id="{anchor(trace)}">\n<h2>{escape(trace)}</h2>\n',
             f'<p class="facts">{prose(provenance(runs))}</p>\n']
    if len(results.traces) > 1:
        parts.append(f'<p class="answer{" failed" if verdict.choice is None else ""}">{prose(verdict.sentence)}</p>\n')
    parts += [ranking_table(runs, verdict), ranking_caption(results, runs, verdict)]
    idle, streams = idle_table(runs), len(memory.stream_names(runs))
    beside = idle if streams <= IDLE_BESIDE_STREAM_COUNT else ""
    if pictures:
        parts.append(f'<div class="pictures">\n<div>{pictures.get("curves", "")}</div>\n'
                     f'<div>{pictures.get("map", "")}{beside}</div>\n</div>\n')
    parts += ["" if beside and pictures else idle, self_check(runs), "</section>\n"]
    return "".join(parts)


def provenance(runs):
    memory = next((run.memory for run in runs if run.memory is not None), None)
    parts = []
    if memory is not None:
        parts.append(memory.source)
        assumed = " (assumed: the recording does not say)" if memory.rules_assumed else ""
        parts.append(f"rules of PyTorch {memory.rules}{assumed}")
    events = max((run.counter("events") or 0 for run in runs), default=0)
    if events:
        parts.append(style.plural(events, "event"))
    if any(run.counter("start_assumed") for run in runs):
        parts.append("the recording begins mid-run: its start state is approximated")
    limits = {run.limit_bytes for run in runs if run.limit_bytes is not None}
    if len(limits) == 1:
        parts.append(f"limit {style.format_bytes(limits.pop())}")
    return " · ".join(part for part in parts if part)


RANKING_HEAD = ["configuration", "peak reserved", "change", "over peak allocated", "fragmentation", "out of memory", "retries",
                "device calls", "host time per event"]


def ranking_table(runs, verdict):
    ranked = ranking.rank(runs)
    top = max(run.peak_reserved_bytes for run in ranked) or 1
    rows = []
    for run in ranked:
        cells = [ranking_name(run, verdict), reserved_cell(run, top), change_cell(run, verdict.baseline), over_allocated_cell(run),
                 measured(run.fragmentation, style.format_percent), out_of_memory_cell(run),
                 measured(run.counter("retries"), style.format_count), measured(run.device_calls, style.format_count),
                 measured(run.counter("ns_per_event"), style.format_ns)]
        rows.append(("best" if run is verdict.choice else "", "".join(cells)))
    return table(RANKING_HEAD, rows, "Ranking of configurations")


def ranking_name(run, verdict):
    tags = tag("run this", "good") if run is verdict.choice else ""
    if ranking.is_limit(run):
        tags += tag("limit: no cache")
    if run.recorded:
        tags += tag("as recorded")
    setting = run.config if run.config and run.config != run.config_name else ""
    line = f'<code class="setting">{escape(setting)}</code>' if setting else ""
    return f'<th scope="row">{escape(run.config_name)}{tags}{line}</th>'


def reserved_cell(run, top):
    """The number above a bar on the scale of the whole table: allocated, and what is reserved beyond it."""
    used = min(run.peak_allocated_bytes, run.peak_reserved_bytes)
    bar = (f'<span class="bar" aria-hidden="true"><i class="a" style="width:{100 * used / top:.1f}%"></i>'
           f'<i class="i" style="width:{100 * (run.peak_reserved_bytes - used) / top:.1f}%"></i></span>')
    return cell(style.format_bytes(run.peak_reserved_bytes), run.peak_reserved_bytes, extra=bar)


def change_cell(run, baseline):
    relative = ranking.change(run, baseline)
    if run is baseline or relative is None:
        return cell("–")
    return cell(style.format_percent(relative, True), relative, css=style.heat_css(relative) if relative else "")


def over_allocated_cell(run):
    if run.peak_allocated_bytes == 0:
        return cell("–")
    ratio = run.peak_reserved_bytes / run.peak_allocated_bytes
    return cell(style.format_ratio(ratio), ratio)


def out_of_memory_cell(run):
    if not run.out_of_memory:
        return cell("no")
    event = run.out_of_memory_event
    return cell("yes" if event is None else f"at event {style.format_count(event)}", event, "bad")


def ranking_caption(results, runs, verdict):
    device = "simulated" if first_context(results).get("cuda") == "simulator" else "of a GPU"
    text = (f"Best first, by peak reserved memory; change is against `{verdict.baseline.config_name}`. "
            "The bar is peak allocated (blue) and what is reserved beyond it (orange). "
            "Fragmentation is 1 − peak allocated / peak reserved. An event is an allocation or a free; host time is measured over one "
            f"replay on this machine, device calls ({device}) included. After the settings stand runs without a cache, then those that ended for want of memory.")
    source = load.REPLAY_FILE if any(run.counters for run in runs) else load.MEMORY_FILE
    return f'<p class="caption">{prose(text)} Source: {source}.</p>\n'


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
        cells = [f'<th scope="row">{escape(run.config_name)}</th>']
        for number in numbers:
            stream = by_number.get(number)
            cells.append(measured(stream and stream.peak_idle_bytes, style.format_bytes))
            cells.append(measured(stream and stream.idle_bytes, style.format_bytes))
        rows.append(("", "".join(cells)))
    head = ["configuration"] + [f"{names[number]}, {when}" for number in numbers for when in ("peak", "at the end")]
    return ("<h3>Idle cache per stream</h3>\n" + table(head, rows, "Idle cache per stream") +
            '<p class="caption">Reserved and not allocated; what one stream keeps, another cannot use. Streams peak at different times, '
            f"so peaks do not add up.{handles(names)} Source: {load.MEMORY_FILE}.</p>\n")


def handles(names):
    """Which handle a counted stream has."""
    renamed = [f"{name} is {number:.0f}" for number, name in names.items() if not name.endswith(f"{style.NBSP}{number:.0f}")]
    return f" As recorded, {', '.join(renamed)}." if renamed else ""


def self_check(runs):
    """How far the replay under the recorded configuration equals the recording."""
    checked = [run for run in runs if run.memory is not None and run.memory.self_check is not None]
    if not checked:
        return ('<p class="caption">Self-check: not done; the configuration of the recording is not among these runs.</p>\n'
                if any(run.memory is not None for run in runs) else "")
    lines = []
    for run in checked:
        check = run.memory.self_check
        counts = ", ".join(f"{style.format_count(check[key][0])} of {style.format_count(check[key][1])} {text}" for key, text in
                           (("blocks", "block addresses"), ("segments", "segments"), ("releases", "releases"),
                            ("layout", "parts of the final layout")))
        verdict = ('<b class="good">✓ equal to the recording</b>' if check["exact"] else '<b class="bad">✗ differs from the recording</b>')
        difference = f" First difference: {escape(check['first_difference'])}." if check["first_difference"] else ""
        lines.append(f'<p class="caption">Self-check under <code>{escape(run.config_name)}</code>: {verdict} ({counts}).{difference}</p>\n')
    return "".join(lines)


# ------------------------------------------------------------------------------------------------------
# Host cost and context.


def host_cost_section(results, pictures):
    costs = results.host_costs
    parts = ['<section id="host-cost">\n<h2>Host cost of an allocation and its free</h2>\n',
             f"<p>{prose(host_cost.sentence(costs))}</p>\n",
             '<div class="pictures">\n' + "".join(pictures.values()) + "</div>\n"]
    rows = []
    for (pattern, size), members in host_cost.group(costs).items():
        for index, cost in enumerate(members):
            name = escape(host_cost.group_text(pattern, size))
            cells = [f'<th scope="rowgroup" rowspan="{len(members)}">{name}</th>' if index == 0 else "", cell(host_cost.subject_text(cost.subject), classes="text"),
                     measured(cost.real_ns, style.format_ns)]
            cells += [measured(host_cost.ratio(cost, members, limit), style.format_ratio) for limit in host_cost.LIMITS]
            cells += [measured(cost.percentiles_ns[name], style.format_ns) for name in ("p50", "p90", "p99", "p999", "max")]
            rows.append(("", "".join(cells)))
    head = ["pattern", "allocator<", "mean", "over ideal list", "over one-mutex list", "p50", "p90", "p99", "p99.9", "max"]
    clock = next((cost.clock_ns for cost in costs if cost.clock_ns), None)
    clock_text = f" They include the clock's own {style.format_ns(clock)}." if clock else ""
    parts.append(table(head, rows, "Host cost"))
    parts.append('<p class="caption">Measured on this machine. Mean: of one allocation and its free, over many in a row, the fastest round. '
                 f"Percentiles: of single calls in a pass of their own.{clock_text} "
                 "Limits: the ideal list is a free list per thread, which no allocator can beat; the one-mutex list is the same "
                 "under one mutex while a second thread is alive. "
                 f"{'The calls of <i>direct</i> reach the simulator, so its times are not those of a GPU. ' if first_context(results).get('cuda') == 'simulator' else ''}"
                 f"Source: {load.HOST_COST_FILE}.</p>\n</section>\n")
    return "".join(parts)


CONTEXT_TEXT = {
    "tidemark_version": "Tidemark", "tidemark_commit": "commit", "compiler": "compiler", "cuda": "CUDA calls answered by",
    "device": "device", "capacity_bytes": "device memory", "topology": "machine", "pinned_cpu": "measuring thread on CPU",
    "load_1min": "load, 1 minute", "seed": "seed", "date": "measured at", "host_name": "host", "library_build_type": "",
    "executable": "", "num_cpus": "", "mhz_per_cpu": "", "cpu_scaling_enabled": "CPU frequency scaling", "caches": "",
    "load_avg": "", "tidemark_schema": "schema",
}


def context_section(results):
    """What was measured where; what differs between the files is shown for each."""
    keys = list(dict.fromkeys(list(CONTEXT_TEXT) + [key for context in results.contexts.values() for key in context]))
    items = []
    for key in keys:
        text = CONTEXT_TEXT.get(key, key)
        values = {}
        for file, context in results.contexts.items():
            if key in context:
                values.setdefault(context_value(key, context[key]), []).append(file)
        if not text or not values:
            continue
        shown = next(iter(values)) if len(values) == 1 else "; ".join(
            f"{value} ({', '.join(files)})" for value, files in values.items())
        items.append(f"<dt>{escape(text)}</dt><dd>{escape(shown)}</dd>\n")
    return ('<section id="context">\n<h2>How this was measured</h2>\n<p>Host times are measured. Memory sizes and device calls are counted from the '
            f'allocator\'s own calls. No modelled device time is on this page.</p>\n<dl>\n{"".join(items)}</dl>\n</section>\n')


def context_value(key, value):
    if key == "capacity_bytes" and str(value).isdigit():
        return style.format_bytes(int(value))
    return str(value)


def figure(svg, name, title, caption, source):
    """A figure with its words: what to see, and where it comes from."""
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
    return (f"<figure>\n<h3>{escape(title)}</h3>\n{svg}\n<figcaption>{prose(caption)} Source: {source}. "
            f'Files: <a href="figures/{name}.png">PNG</a>, <a href="figures/{name}.svg">SVG</a>.</figcaption>\n</figure>\n')


def document(title, sections):
    with open(CSS_FILE, encoding="utf-8") as file:
        css = file.read()
    return ('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(title)}</title>\n<style>\n{style.theme_css()}{css}</style>\n</head>\n<body>\n<main>\n"
            f"{''.join(sections)}</main>\n</body>\n</html>\n")
