"""The section of replay speed: a sentence and a small table for each trace."""

from reports import host_cost, load, replay_speed, style
from reports.markup import caption, escape, heading, measured, prose, table


def replay_speed_section(results):
    parts = ['<section id="replay-speed">\n<h2>Replay speed</h2>\n']
    for trace in replay_speed.traces(results):
        parts += [f"<p>{prose(trace.sentence)}</p>\n", speed_table(trace), speed_caption(trace)]
    return "".join(parts) + "</section>\n"


def speed_table(trace):
    rows = []
    for speed in trace.speeds:
        name = host_cost.SUBJECTS.get(speed.subject, speed.subject)
        what = f'<span class="setting">{escape(speed.config)}</span>'
        cells = [heading(escape(name) + what)]
        cells.append(measured(speed.ns_per_event, style.format_ns))
        cells.append(measured(speed.events_per_second, style.format_rate))
        for limit in host_cost.LIMITS:
            cells.append(measured(trace.ratio(speed, limit), style.format_ratio))
        rows.append("".join(cells))
    head = ["allocator", "per event", "events/s", "over ideal list", "over one-mutex list"]
    return table(head, rows, f"Replay speed of {trace.trace}")


def speed_caption(trace):
    text = (
        f"Measured on this machine: all requests of `{trace.trace}` in a row, the device only"
        " accounts, the fastest of the rounds. An event is an allocation or a free. The lists are"
        " limits: they decide nothing."
    )
    return caption(prose(text), load.REPLAY_SPEED_FILE)
