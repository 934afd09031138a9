"""The section of programs: for each a sentence and a table, and one picture of all."""

from reports import load, style, workloads
from reports.markup import caption, cell, escape, heading, measured, prose, table
from reports.ranking import BASELINE


def workloads_section(results, picture):
    kind = "modelled" if workloads.is_modelled(results.workloads) else "measured"
    parts = ['<section id="workloads">\n<h2>Programs under settings</h2>\n']
    parts.append(f"<p>{prose(introduction(kind))}</p>\n{picture}")
    for group in workloads.groups(results.workloads):
        parts.append(f"<h3>{escape(group.program)}</h3>\n<p>{prose(group.sentence)}</p>\n")
        parts.append(program_table(group, kind))
    return "".join(parts) + caption(prose(legend(kind)), load.WORKLOADS_FILE) + "</section>\n"


def introduction(kind):
    return (
        "Programs that use memory as models do in training and serving, run under each setting; all"
        f" settings computed the same values. Times of steps and stalls are {kind}, host time is"
        " measured."
    )


def program_table(group, kind):
    head = ["setting", f"step, {kind}", "p99", "steps/s", "peak reserved", "over allocated"]
    head += ["device calls", "retries", "stall a step"]
    head += ["waiting", "device dry"] if kind == "modelled" else []
    head += ["first step's stall", "share of host time"]
    rows = [setting_row(run, group.baseline, len(head)) for run in group.runs]
    return table(head, rows, f"{group.program} under settings")


def relative(value, base):
    return value / base - 1 if base else None


def setting_row(run, base, column_count):
    what = run.config or "PyTorch's defaults"
    first = heading(escape(run.config_name) + f'<span class="setting">{escape(what)}</span>')
    if run.out_of_memory:
        dashes = cell("–") * (column_count - 2)
        return first + cell("out of memory", classes="bad") + dashes
    reserved = run.counter("peak_reserved_bytes")
    allocated = run.counter("peak_allocated_bytes")
    median = run.counter("p50_ns")
    cells = [
        cell(style.format_ns(median), median, heat=relative(median, base.counter("p50_ns"))),
        measured(run.counter("p99_ns"), style.format_ns),
        measured(run.counter("steps_per_second"), style.digits),
        cell(
            style.format_bytes(reserved),
            reserved,
            heat=relative(reserved, base.counter("peak_reserved_bytes")),
        ),
        measured(reserved / allocated if allocated else None, style.format_ratio),
        measured(run.device_calls, style.format_count),
        measured(run.counter("retries"), style.format_count),
        measured(run.counter("stall_ns"), style.format_ns),
    ]
    if run.modelled:
        cells += [measured(run.counter(name), style.format_ns) for name in ("wait_ns", "dry_ns")]
    cells.append(measured(run.counter("first_stall_ns"), style.format_ns))
    cells.append(measured(run.counter("allocator_share"), style.format_percent))
    return first + "".join(cells)


def legend(kind):
    text = (
        "Step: the median of the steps behind the first. Device calls: of the whole run. Stall: time"
        " inside allocator calls, a step; the first step has most of what an allocator grows by."
    )
    if kind == "modelled":
        text += (
            " Waiting: of the stall, the host waited for the device; device dry: of the stall, no"
            " device had anything to do, which is what a program loses. A stall beside a busy device"
            " is hidden."
        )
    return text + (
        " Share of host time: CPU time inside the allocator, over the program's. Blue is less, orange"
        f" is more than under `{BASELINE}`."
    )
