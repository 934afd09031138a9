"""How fast a long history replays, beside the limits measured in the same run: the figures and the
sentence about them.
"""

import dataclasses

from reports import style
from reports.host_cost import SUBJECTS

SUBJECT, LIMIT = "caching", "mutex_list"


@dataclasses.dataclass
class TraceSpeed:
    """One trace under all subjects."""

    trace: str
    speeds: list  # of ReplaySpeed, in the order of SUBJECTS

    def speed_of(self, subject):
        return next((speed for speed in self.speeds if speed.subject == subject), None)

    def ratio(self, speed, subject):
        """Time over that of a limit; None without it."""
        limit = self.speed_of(subject)
        if limit is None or limit.ns_per_event == 0:
            return None
        return speed.ns_per_event / limit.ns_per_event

    @property
    def sentence(self):
        caching = self.speed_of(SUBJECT)
        if caching is None:
            return f"The replay of `{self.trace}` has no caching allocator."
        text = (
            f"A replay of {style.format_count(caching.events)} allocations and frees does"
            f" {style.format_rate(caching.events_per_second)} events/s:"
            f" {style.format_ns(caching.ns_per_event)} an event"
        )
        ratio = self.ratio(caching, LIMIT)
        if ratio is not None:
            text += f", {style.format_ratio(ratio)} the time of a free list under one mutex"
        return text + "."


def traces(results):
    """A TraceSpeed for each trace of REPLAY_SPEED_FILE."""
    order = {subject: place for place, subject in enumerate(SUBJECTS)}
    groups = {}
    for speed in results.replay_speeds:
        groups.setdefault(speed.trace, []).append(speed)
    return [
        TraceSpeed(trace, sorted(speeds, key=lambda speed: order.get(speed.subject, len(order))))
        for trace, speeds in groups.items()
    ]
