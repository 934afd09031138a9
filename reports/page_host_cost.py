"""The section of host costs: pictures and tables, for one thread and for two."""

from reports import host_cost, load, style
from reports.markup import caption, cell, escape, heading, measured, pictures, prose, table
from reports.page_context import first_context

PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}


def host_cost_section(results, figures):
    """FIGURES: HTML by key."""
    parts = ['<section id="host-cost">\n<h2>Host cost of an allocation and its free</h2>\n']
    if results.host_costs:
        parts.append(f"<p>{prose(host_cost.sentence(results.host_costs))}</p>\n")
        parts.append(pictures(figures["bars"], figures["spread"]))
        parts += [one_thread_table(results.host_costs), one_thread_caption(results)]
    if results.two_threads:
        parts.append("<h3>Two threads at once</h3>\n")
        table_html = two_threads_table(results.two_threads) + two_threads_caption()
        parts.append(pictures(figures["two threads"], table_html))
    return "".join(parts) + "</section>\n"


def cost_rows(costs, cells_of):
    """A row a benchmark, the pattern once a group; CELLS_OF(cost, group) gives the numbers."""
    rows = []
    for (pattern, size), members in host_cost.group(costs).items():
        name = heading(escape(host_cost.group_text(pattern, size)), len(members))
        for cost in members:
            subject = cell(host_cost.subject_text(cost), classes="text")
            rows.append(name + subject + "".join(cells_of(cost, members)))
            name = ""
    return rows


def one_thread_table(costs):
    def cells_of(cost, members):
        cells = [measured(cost.real_ns, style.format_ns)]
        for limit in host_cost.LIMITS:
            cells.append(measured(host_cost.ratio(cost, members, limit), style.format_ratio))
        for key in PERCENTILES:
            cells.append(measured(cost.percentiles_ns[key], style.format_ns))
        return cells

    head = ["pattern", "allocator<", "mean", "over ideal list", "over one-mutex list"]
    return table(head + list(PERCENTILES.values()), cost_rows(costs, cells_of), "Host cost")


def one_thread_caption(results):
    clock = next((cost.clock_ns for cost in results.host_costs if cost.clock_ns), None)
    clock_text = f" They include the clock's own {style.format_ns(clock)}." if clock else ""
    simulated = ""
    if first_context(results).get("cuda") == "simulator":
        simulated = (
            " Calls of <i>direct</i> and <i>async</i> reach the simulator: their times are not those of a"
            " GPU."
        )
    text = (
        "Measured on this machine. Mean: of one allocation and its free, over many in a row, the"
        f" fastest round. Percentiles: of single pairs, in a pass of their own.{clock_text} Limits:"
        " the ideal list is a free list per thread, which no allocator can beat; the one-mutex"
        f" list is the same under one mutex while a second thread is alive.{simulated}"
    )
    return caption(text, load.HOST_COST_FILE)


def two_threads_table(costs):
    def cells_of(cost, members):
        return [
            measured(cost.real_ns, style.format_ns),
            measured(host_cost.ratio(cost, members, "mutex_list"), style.format_ratio),
            measured(cost.times_one_thread, style.format_ratio),
        ]

    head = ["pattern", "allocator<", "mean", "over mutex", "speed-up"]
    return table(head, cost_rows(costs, cells_of), "Host cost of two threads")


def two_threads_caption():
    text = (
        "Measured on this machine: one allocation and its free in each of two threads, each with"
        " its own live blocks. The one-mutex list is one list under one mutex used by both."
        " Speed-up is the throughput of both threads together over that of one alone: 2× would be"
        " perfect."
    )
    return caption(text, load.TWO_THREADS_FILE)
