"""Which setting to run: the order of configurations, what the best one saves, and what that costs.

Best is the lowest peak of reserved memory among the runs that finished: it decides which device, or
how large a batch, suffices. Peak reserved over peak allocated is shown beside it but does not rank:
a setting that rounds sizes up raises both. A run without a cache (x_allocator:direct and the like)
is a limit, not a setting to run: it stands after the settings, and the best is never chosen from
it. Out of memory comes last, be it a request that failed in the recording as well: its peak lacks
what was not served. Of two such runs, the one that got further is better.
"""

import dataclasses
import math

from reports import style

BASELINE = "default"
# Less than this is not worth a setting that somebody has to remember.
WORTHWHILE_SHARE = 0.01
WORTHWHILE_TEXT = f"{100 * WORTHWHILE_SHARE:g}{style.NBSP}%"


def is_limit(run):
    """True for a run whose allocator is not the caching one."""
    keys = dict(part.split(":", 1) for part in run.config.split(",") if ":" in part)
    if "x_allocator" in keys:
        return keys["x_allocator"] != "caching"
    return keys.get("backend") == "cudaMallocAsync"


def is_baseline(run):
    return run.config_name == BASELINE


def order(run):
    """Sort key, best first. Equal memory: fewer retries, fewer device calls, then the default,
    then the name.
    """
    if run.out_of_memory:
        served = math.inf if run.failed_as_recorded else run.out_of_memory_event or 0
        return (2, -served, run.peak_reserved_bytes, not is_baseline(run), run.config_name)
    return (
        1 if is_limit(run) else 0,
        run.peak_reserved_bytes,
        run.counter("retries") or 0,
        run.device_calls or 0,
        not is_baseline(run),
        run.config_name,
    )


def rank(runs):
    return sorted(runs, key=order)


def baseline_of(runs):
    """The run that others are compared with: "default", else one with no setting at all, else the
    recording's own, else the first; a limit only if there is nothing else.
    """
    settings = [run for run in runs if not is_limit(run)] or runs
    for fits in (is_baseline, lambda run: not run.config, lambda run: run.recorded):
        found = next((run for run in settings if fits(run)), None)
        if found is not None:
            return found
    return settings[0]


@dataclasses.dataclass
class Verdict:
    """What to run for one trace. best: the lowest peak of a setting that finishes; choice: that, or
    the baseline if little is saved.
    """

    baseline: object
    best: object | None
    choice: object | None
    sentence: str

    @property
    def saved_bytes(self):
        """None if either did not finish."""
        if self.choice is None or self.baseline.out_of_memory:
            return None
        return self.baseline.peak_reserved_bytes - self.choice.peak_reserved_bytes


def change(run, baseline):
    """Peak reserved relative to the baseline's, 0 is equal; None if either ran out of memory."""
    if run.out_of_memory or baseline.out_of_memory or baseline.peak_reserved_bytes == 0:
        return None
    return run.peak_reserved_bytes / baseline.peak_reserved_bytes - 1


def judge(runs):
    """The verdict on the runs of one trace. Names are set in backticks."""
    baseline = baseline_of(runs)
    ranked = rank(runs)
    settings = [run for run in ranked if not run.out_of_memory and not is_limit(run)]
    if not settings:
        return Verdict(baseline, None, None, nothing_finished(ranked))
    best = settings[0]
    peak = f"it reserves {style.format_bytes(best.peak_reserved_bytes)} at its peak"
    if len(settings) == 1 and best is baseline:
        sentence = f"`{name(best)}` is the only setting here that finishes: {peak}."
        return Verdict(baseline, best, best, sentence)
    if baseline.out_of_memory:
        sentence = f"Run `{name(best)}`: {peak} and finishes, where `{name(baseline)}` "
        sentence += f"{ran_out(baseline)}.{limited(best, baseline)}"
        return Verdict(baseline, best, best, sentence)
    saved = baseline.peak_reserved_bytes - best.peak_reserved_bytes
    if saved <= 0 or saved < WORTHWHILE_SHARE * baseline.peak_reserved_bytes:
        return Verdict(baseline, best, baseline, keep(baseline, best, settings))
    sentence = (
        f"Run `{name(best)}`: {peak}, {style.format_bytes(saved)}"
        f" ({style.format_percent(saved / baseline.peak_reserved_bytes)}) less than"
        f" `{name(baseline)}`, {cost(best, baseline)}.{limited(best, baseline)}"
        f"{window(best, baseline)}"
    )
    return Verdict(baseline, best, best, sentence)


def name(run):
    return run.config_name


def limit_differs(run, baseline):
    """A run with a limit of its own: garbage collection, for one, does nothing without a memory
    fraction.
    """
    return (run.memory_fraction, run.limit_bytes) != (
        baseline.memory_fraction,
        baseline.limit_bytes,
    )


def limit_text(run):
    if run.limit_bytes is not None:
        return f"limited to {style.format_bytes(run.limit_bytes)}"
    return "limited by a memory fraction" if run.memory_fraction else "not limited"


def limited(run, baseline):
    if not limit_differs(run, baseline):
        return ""
    fraction = (
        f" (memory fraction {run.memory_fraction:.3g})"
        if run.memory_fraction and run.capacity_bytes is not None
        else ""
    )
    return (
        f" That is with the process {limit_text(run)}{fraction}; under `{name(baseline)}` it was"
        f" {limit_text(baseline)}."
    )


def window(run, baseline):
    """Of a recording that begins mid-run, only its own configuration has the cache of before."""
    if not run.counter("start_assumed") or baseline.counter("start_assumed"):
        return ""
    return (
        f" The recording begins mid-run: `{name(run)}` starts without the cache that"
        f" `{name(baseline)}` has by then, so the difference is an estimate."
    )


def ran_out(run):
    if run.failed_as_recorded:
        return "ran out of memory, as in the recording"
    event = run.out_of_memory_event
    return "ran out of memory" + (
        "" if event is None else f" at event{style.NBSP}{style.format_count(event)}"
    )


def nothing_finished(ranked):
    furthest = next((run for run in ranked if not is_limit(run)), None)
    if furthest is None:
        return (
            f"Only `{name(ranked[0])}` was run, which has no cache: there is no setting to choose."
        )
    return f"No setting finishes. `{name(furthest)}` got furthest: it {ran_out(furthest)}."


def keep(baseline, best, settings):
    others = [run for run in settings if run is not baseline]
    text = (
        f"Keep `{name(baseline)}`: it reserves {style.format_bytes(baseline.peak_reserved_bytes)}"
        " at its peak, and "
    )
    saved = baseline.peak_reserved_bytes - best.peak_reserved_bytes
    if saved > 0:
        text += (
            f"the best other setting, `{name(best)}`, saves only {style.format_bytes(saved)} "
            f"({style.format_percent(saved / baseline.peak_reserved_bytes)})."
        )
    else:
        text += f"no other setting takes less ({style.plural(len(others), 'other')} tried)."
    worst = max(others, key=lambda run: run.peak_reserved_bytes)
    more = worst.peak_reserved_bytes - baseline.peak_reserved_bytes
    if more > 0 and baseline.peak_reserved_bytes > 0:
        text += (
            f" `{name(worst)}` takes {style.format_bytes(more)} "
            f"({style.format_percent(more / baseline.peak_reserved_bytes)}) more."
        )
    return text


def cost(best, baseline):
    """What the best setting costs against the baseline, in device calls, retries and host time."""
    parts = []
    calls, base = best.device_calls, baseline.device_calls
    if calls is not None and base is not None:
        span = f"({style.format_count(base)} → {style.format_count(calls)})"
        if calls == base:
            parts.append(f"with the same {style.plural(calls, 'device call')}")
        else:
            more = "more" if calls > base else "fewer"
            parts.append(f"with {style.format_count(abs(calls - base))} {more} device calls {span}")
    retries = best.counter("retries")
    if retries:
        parts.append(f"{style.plural(retries, 'retry')} after a failed device call")
    before, after = baseline.counter("ns_per_event"), best.counter("ns_per_event")
    if before and after:
        parts.append(
            f"{style.format_ns(after)} of host time an event instead of {style.format_ns(before)}"
        )
    if not parts:
        return "at a cost that these files do not tell"
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


# --------------------------------------------------------------------------------------------------
# Over all traces.


@dataclasses.dataclass
class Overall:
    """One setting over all traces, against the baseline of each."""

    config_name: str
    limit: bool
    trace_count: int
    out_of_memory_count: int
    changes: list  # relative change of each trace where both finished
    limited: bool  # with limits other than the baseline's
    near_best_count: int  # traces where it is within WORTHWHILE_SHARE of the best

    @property
    def mean_change(self):
        """Geometric mean; None if nothing can be compared."""
        if not self.changes:
            return None
        return math.exp(sum(math.log1p(value) for value in self.changes) / len(self.changes)) - 1


def config_names(results):
    return list(dict.fromkeys(run.config_name for run in results.runs))


def compare_all(results):
    """An Overall for each configuration, best first: fewest out of memory, then the lowest mean."""
    rows = []
    for config_name in config_names(results):
        runs = [run for run in results.runs if run.config_name == config_name]
        changes, near = [], 0
        for run in runs:
            verdict = judge(results.runs_of(run.trace))
            relative = change(run, verdict.baseline)
            if relative is not None and relative > -1:
                changes.append(relative)
            if not run.out_of_memory and verdict.best is not None:
                near += run.peak_reserved_bytes <= verdict.best.peak_reserved_bytes * (
                    1 + WORTHWHILE_SHARE
                )
        rows.append(
            Overall(
                config_name,
                any(is_limit(run) for run in runs),
                len(runs),
                sum(run.out_of_memory for run in runs),
                changes,
                limited_anywhere(results, runs),
                near,
            )
        )
    return sorted(
        rows,
        key=lambda row: (
            row.limit,
            row.out_of_memory_count,
            math.inf if row.mean_change is None else row.mean_change,
            row.config_name != BASELINE,
            row.config_name,
        ),
    )


def limited_anywhere(results, runs):
    return any(limit_differs(run, baseline_of(results.runs_of(run.trace))) for run in runs)


def answer(results):
    """The first sentence of the page."""
    traces = results.traces
    if not traces:
        return ""
    if len(traces) == 1:
        return judge(results.runs).sentence
    rows = [row for row in compare_all(results) if row.trace_count == len(traces) and not row.limit]
    if not rows:
        return "No setting was run on every trace; see each trace below."
    best = rows[0]
    base = next((row for row in rows if row.config_name == BASELINE), None)
    if base is None or best.mean_change is None:
        return (
            f"`{best.config_name}` is the best of {len(rows)} settings on all {len(traces)} traces"
            f" together{failures(best)}."
        )
    saves = (
        best.mean_change <= -WORTHWHILE_SHARE or best.out_of_memory_count < base.out_of_memory_count
    )
    if best is base or not saves:
        return (
            f"If one setting has to serve all {len(traces)} traces, keep `{BASELINE}`: no other"
            f" setting saves {WORTHWHILE_TEXT} on average, and it is within"
            f" {WORTHWHILE_TEXT} of the best on {base.near_best_count} of"
            f" {len(traces)}{failures(base)}."
        )
    return (
        f"If one setting has to serve all {len(traces)} traces, run `{best.config_name}`: at the"
        " peak it reserves "
        f"{style.format_percent(abs(best.mean_change))}"
        f" {'less' if best.mean_change <= 0 else 'more'} than `{BASELINE}` "
        f"(geometric mean; from {style.format_percent(min(best.changes), True)} to "
        f"{style.format_percent(max(best.changes), True)}){failures(best, base)}. It is within"
        f" {WORTHWHILE_TEXT} of the best setting "
        f"on {best.near_best_count} of {len(traces)}."
        f"{' It ran with a tighter limit on memory than the default.' if best.limited else ''}"
    )


def failures(row, base=None):
    if row.out_of_memory_count == 0 and base is not None and base.out_of_memory_count > 0:
        return (
            f", and it finishes all of them, where `{BASELINE}` runs out of memory on"
            f" {base.out_of_memory_count}"
        )
    if row.out_of_memory_count == 0:
        return ""
    return f"; it runs out of memory on {row.out_of_memory_count} of {row.trace_count}"
