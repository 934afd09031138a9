"""Reads a result folder into plain records; docs/results.md is the schema.

What a page shows is decided elsewhere: here a file is either understood in full or refused in one
line that says which file, what is wrong and what would be right. Files may be absent (an
interrupted run, or a program that writes only some of them); records of the two replay files are
joined by trace and configuration.
"""

import os
import re

from reports.reader import ResultError, kind_of, read_json
from reports.records import (
    HostCost,
    Memory,
    ReplaySpeed,
    Results,
    Run,
    Segment,
    Stream,
    Workload,
    bounded,
)

HOST_COST_FILE = "host_cost.json"
TWO_THREADS_FILE = "host_cost_two_threads.json"
REPLAY_FILE = "replay.json"
MEMORY_FILE = "replay_memory.json"
REPLAY_SPEED_FILE = "replay_speed.json"
WORKLOADS_FILE = "workloads.json"
FILES = (
    HOST_COST_FILE,
    TWO_THREADS_FILE,
    REPLAY_FILE,
    MEMORY_FILE,
    REPLAY_SPEED_FILE,
    WORKLOADS_FILE,
)

SCHEMA = "1"
MEMORY_SCHEMA = "tidemark-memory-1"

# Google Benchmark appends these to a name; they say how it was measured, not what.
NAME_SUFFIX = re.compile(
    r"/(real_time|process_time|manual_time|(iterations|repeats|min_time|threads):[^/]*)$"
)
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
RECORDED_NAME = "recorded"
BLOCK_STATES = ("allocated", "inactive", "pending")


def read_context(reader):
    context = reader.get("context", 'the "context" object of docs/results.md')
    schema = context.get("tidemark_schema", f'"{SCHEMA}"').value
    if str(schema) != SCHEMA:
        context.fail(
            f'"tidemark_schema" is {schema}', f"{SCHEMA}, the version that this program reads"
        )
    return context.value


def read_benchmarks(reader, prefix):
    """(name parts after the prefix, reader) of each benchmark; repetitions are joined by the
    fastest.
    """
    found = {}
    items = reader.get("benchmarks", "Google Benchmark's list").items()
    for item in items:
        if item.has("run_type") and item.value["run_type"] == "aggregate":
            continue
        name = item.get("name", f'a name "{prefix}/..."').text()
        if item.has("error_occurred") and item.value["error_occurred"]:
            item.fail(
                f"{name} failed: {item.value.get('error_message', 'no message')}",
                "a benchmark that succeeded",
            )
        while NAME_SUFFIX.search(name):
            name = NAME_SUFFIX.sub("", name)
        parts = name.split("/")
        if parts[0] != prefix:
            item.fail(f'the name is "{name}"', f'a name that begins with "{prefix}/"')
        item.where = f"{item.where} ({name})"
        if name not in found or real_ns(item) < real_ns(found[name][1]):
            found[name] = (parts[1:], item)
    if not found:
        reader.fail("holds no benchmark", "at least one")
    return list(found.values())


def real_ns(item):
    unit = item.get("time_unit", "ns, us, ms or s").text()
    if unit not in NANOSECONDS:
        item.fail(f'"time_unit" is "{unit}"', "ns, us, ms or s")
    return item.get("real_time", "a time").number() * NANOSECONDS[unit]


def read_host_costs(reader):
    costs = []
    for parts, item in read_benchmarks(reader, "host_cost"):
        if len(parts) != 3:
            item.fail(
                f"the name has {len(parts)} parts after host_cost",
                "host_cost/SUBJECT/PATTERN/BYTES",
            )
        percentiles = {
            name: item.get(f"{name}_ns", "the latency percentiles of docs/results.md").number()
            for name in ("p50", "p90", "p99", "p999", "max")
        }
        costs.append(
            HostCost(
                subject=parts[0],
                pattern=parts[1],
                size=parts[2],
                config=item.get("label").text() if item.has("label") else "",
                real_ns=real_ns(item),
                times_mutex=optional(item, "x_mutex_list"),
                percentiles_ns=percentiles,
                clock_ns=optional(item, "clock_ns"),
            )
        )
    return costs


def optional(item, key):
    return item.get(key).number() if item.has(key) else None


def read_two_threads(reader):
    costs = []
    for parts, item in read_benchmarks(reader, "host_cost_two_threads"):
        if len(parts) != 4:
            item.fail(
                f"the name has {len(parts)} parts after host_cost_two_threads",
                "host_cost_two_threads/SUBJECT/PATTERN/BYTES/STREAMS",
            )
        costs.append(
            HostCost(
                subject=parts[0],
                pattern=parts[1],
                size=parts[2],
                streams=parts[3],
                config=item.get("label").text() if item.has("label") else "",
                real_ns=real_ns(item),
                times_mutex=optional(item, "x_mutex_list"),
                times_one_thread=optional(item, "x_one_thread"),
                percentiles_ns={},
            )
        )
    return costs


def read_replay_speeds(reader):
    speeds = []
    for parts, item in read_benchmarks(reader, "replay_speed"):
        if len(parts) < 2:
            item.fail(
                f"the name has {len(parts)} parts after replay_speed", "replay_speed/SUBJECT/TRACE"
            )
        speeds.append(
            ReplaySpeed(
                trace="/".join(parts[1:]),
                subject=parts[0],
                config=item.get("label").text() if item.has("label") else "",
                events=item.get("events").number(),
                ns_per_event=item.get("ns_per_event").number(),
                events_per_second=item.get("events_per_second").number(),
            )
        )
    return speeds


WORKLOAD_COUNTERS = (
    "modelled",
    "p50_ns",
    "p99_ns",
    "steps_per_second",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "device_mallocs",
    "device_frees",
    "retries",
    "stall_ns",
    "first_stall_ns",
    "allocator_share",
)
WORKLOAD_COUNTERS_MODELLED = ("wait_ns", "dry_ns")


def read_workloads(reader):
    workloads = []
    for parts, item in read_benchmarks(reader, "workloads"):
        if len(parts) != 2:
            item.fail(
                f"the name has {len(parts)} parts after workloads", "workloads/PROGRAM/CONFIG"
            )
        workload = Workload(
            program=parts[0],
            config_name=parts[1],
            config=item.get("label").text() if item.has("label") else "",
            out_of_memory=bool(item.get("out_of_memory", "0 or 1").number()),
        )
        if not workload.out_of_memory:
            workload.mean_ns = real_ns(item)
            names = WORKLOAD_COUNTERS
            if item.get("modelled", "0 or 1").number():
                names += WORKLOAD_COUNTERS_MODELLED
            workload.counters = {
                name: item.get(name, "this counter of docs/results.md").number() for name in names
            }
        workloads.append(workload)
    return workloads


COUNTERS_REQUIRED = (
    "events",
    "ns_per_event",
    "peak_reserved_bytes",
    "peak_allocated_bytes",
    "device_mallocs",
    "device_frees",
    "retries",
    "out_of_memory",
)
COUNTERS_OPTIONAL = (
    "ooms",
    "out_of_memory_event",
    "start_assumed",
    "capacity_bytes",
    "memory_fraction",
    "limit_bytes",
    "modelled_device_s",
    "modelled_device_low_s",
    "modelled_device_high_s",
)


def read_replays(reader):
    runs = []
    for parts, item in read_benchmarks(reader, "replay"):
        if len(parts) < 2:
            item.fail(f"the name has {len(parts)} parts after replay", "replay/TRACE/CONFIG")
        counters = {
            name: item.get(name, "this counter of docs/results.md").number()
            for name in COUNTERS_REQUIRED
        }
        counters.update(
            {name: item.get(name).number() for name in COUNTERS_OPTIONAL if item.has(name)}
        )
        runs.append(
            Run(
                trace="/".join(parts[:-1]),
                config_name=parts[-1],
                config=item.get("label").text() if item.has("label") else "",
                peak_reserved_bytes=counters["peak_reserved_bytes"],
                peak_allocated_bytes=counters["peak_allocated_bytes"],
                counters=counters,
                capacity_bytes=bounded(counters.get("capacity_bytes", 0)),
                memory_fraction=counters.get("memory_fraction", 0),
            )
        )
    return runs


def read_series(reader):
    series = {
        key: reader.get(key).numbers()
        for key in ("event", "reserved_bytes", "allocated_bytes", "active_bytes")
    }
    for key, values in series.items():
        if len(values) != len(series["event"]):
            reader.fail(
                f'"{key}" has {len(values)} points and "event" {len(series["event"])}',
                "lists of one length",
            )
    if not series["event"]:
        reader.fail("has no point", "at least one")
    return series


def read_segment(reader):
    segment = Segment(
        address=reader.get("address").number(),
        size=reader.get("size").number(),
        stream=reader.get("stream").number(),
        pool=reader.get("pool").text(),
        blocks=[],
    )
    for block in reader.get("blocks").items():
        if not isinstance(block.value, list) or len(block.value) != 3:
            block.fail(f"is {kind_of(block.value)}", "[offset, size, state]")
        offset, size, state = block.items()
        if state.text() not in BLOCK_STATES:
            state.fail(f'is "{state.value}"', " or ".join(f'"{name}"' for name in BLOCK_STATES))
        if offset.number() + size.number() > segment.size:
            block.fail(
                f"ends {offset.value + size.value} bytes into a segment of {segment.size}",
                "a block inside its segment",
            )
        segment.blocks.append((offset.value, size.value, state.value))
    return segment


def read_memory(reader):
    out_of_memory = self_check = None
    if reader.has("out_of_memory"):
        item = reader.get("out_of_memory")
        out_of_memory = {
            "event": item.get("event").number(),
            "size_bytes": item.get("size_bytes").number(),
            "message": item.get("message").text(),
        }
    if reader.has("self_check"):
        item = reader.get("self_check")
        self_check = {
            "exact": item.get("exact").truth(),
            "first_difference": item.get("first_difference").text(),
        }
        for key in ("blocks", "segments", "releases", "layout"):
            pair = item.get(key).numbers()
            if len(pair) != 2 or pair[0] > pair[1]:
                item.get(key).fail(f"is {pair}", "[equal, all]")
            self_check[key] = tuple(pair)
    streams = [
        Stream(
            **{
                key: item.get(key).number()
                for key in (
                    "stream",
                    "reserved_bytes",
                    "allocated_bytes",
                    "idle_bytes",
                    "peak_idle_bytes",
                )
            }
        )
        for item in reader.get("streams").items()
    ]
    return Memory(
        source=reader.get("source").text(),
        rules=reader.get("rules").text(),
        rules_assumed=reader.get("rules_assumed").truth(),
        recorded=reader.get("recorded").truth(),
        series=read_series(reader.get("series")),
        streams=streams,
        segments=[read_segment(item) for item in reader.get("segments").items()],
        out_of_memory=out_of_memory,
        self_check=self_check,
    )


def read_memories(reader):
    """(trace, configuration name) -> Run with its memory, peaks taken from the curves."""
    schema = reader.get("schema", f'"{MEMORY_SCHEMA}"').value
    if schema != MEMORY_SCHEMA:
        reader.fail(
            f'"schema" is {kind_of(schema)}',
            f'"{MEMORY_SCHEMA}", the version that this program reads',
        )
    runs = {}
    for item in reader.get("runs", "the list of runs").items():
        trace, config_name = item.get("trace").text(), item.get("config_name").text()
        item.where = f"{item.where} ({trace}, {config_name})"
        if (trace, config_name) in runs:
            item.fail("the same trace and configuration come twice", "each once")
        memory = read_memory(item)
        runs[trace, config_name] = Run(
            trace=trace,
            config_name=config_name,
            config=item.get("config").text(),
            peak_reserved_bytes=max(memory.series["reserved_bytes"]),
            peak_allocated_bytes=max(memory.series["allocated_bytes"]),
            counters={},
            capacity_bytes=bounded(item.get("capacity_bytes").number()),
            memory_fraction=item.get("memory_fraction").number(),
            memory=memory,
        )
    if not runs:
        reader.fail('"runs" is empty', "at least one run")
    return runs


def join(runs, memories, notes):
    """Gives each run of REPLAY_FILE its curves; what only one of the files has is kept and
    noted.
    """
    known = set()
    for run in runs:
        known.add((run.trace, run.config_name))
        twin = memories.get((run.trace, run.config_name))
        if twin is None:
            continue
        run.memory = twin.memory
        run.config = run.config or twin.config
        if twin.peak_reserved_bytes != run.peak_reserved_bytes:
            notes.append(
                f"{run.trace} under {run.config_name}: {REPLAY_FILE} has a peak of "
                f"{run.peak_reserved_bytes:.0f} reserved bytes, the curve in {MEMORY_FILE} "
                f"{twin.peak_reserved_bytes:.0f}."
            )
    only_memory = [run for key, run in memories.items() if key not in known]
    if runs and only_memory:
        notes.append(f"{len(only_memory)} runs of {MEMORY_FILE} are not in {REPLAY_FILE}.")
    without = [run for run in runs if run.memory is None]
    if memories and without:
        notes.append(f"{len(without)} runs of {REPLAY_FILE} have no curves in {MEMORY_FILE}.")
    return runs + only_memory


def note_gaps(results):
    """An interrupted run leaves some configurations of its last trace out."""
    # "recorded" is the recording's own configuration, run where no other name stands for it.
    names = {run.config_name for run in results.runs} - {RECORDED_NAME}
    for trace in results.traces:
        absent = sorted(names - {run.config_name for run in results.runs_of(trace)})
        if absent:
            results.notes.append(f"{trace} was not run under {', '.join(absent)}.")


def load(folder):
    """The results in a folder. Raises ResultError."""
    if not os.path.isdir(folder):
        problem = "is not a folder" if os.path.exists(folder) else "does not exist"
        raise ResultError(f"{folder}: {problem}; expected a folder with {', '.join(FILES)}")
    readers = {name: read_json(folder, name) for name in FILES}
    if not any(readers.values()):
        raise ResultError(
            f"{folder}: holds no results; expected at least one of {', '.join(FILES)}"
        )
    results = Results(folder, [], [], [], {}, [])
    for name, reader in readers.items():
        if reader is not None:
            results.contexts[name] = read_context(reader)
    if readers[HOST_COST_FILE]:
        results.host_costs = read_host_costs(readers[HOST_COST_FILE])
    if readers[TWO_THREADS_FILE]:
        results.two_threads = read_two_threads(readers[TWO_THREADS_FILE])
    if readers[REPLAY_SPEED_FILE]:
        results.replay_speeds = read_replay_speeds(readers[REPLAY_SPEED_FILE])
    if readers[WORKLOADS_FILE]:
        results.workloads = read_workloads(readers[WORKLOADS_FILE])
    runs = read_replays(readers[REPLAY_FILE]) if readers[REPLAY_FILE] else []
    memories = read_memories(readers[MEMORY_FILE]) if readers[MEMORY_FILE] else {}
    for present, absent in ((REPLAY_FILE, MEMORY_FILE), (MEMORY_FILE, REPLAY_FILE)):
        if readers[present] and not readers[absent]:
            results.notes.append(f"{absent} is absent: an interrupted run, or a file not copied.")
    results.runs = join(runs, memories, results.notes)
    note_gaps(results)
    return results
