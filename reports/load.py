"""Reads a result folder into plain records; docs/results.md is the schema.

What a page shows is decided elsewhere: here a file is either understood in full or refused in one line
that says which file, what is wrong and what would be right. Files may be absent (an interrupted run, or a
program that writes only some of them); records of the two replay files are joined by trace and configuration.
"""

import dataclasses
import json
import math
import os
import re

HOST_COST_FILE = "host_cost.json"
REPLAY_FILE = "replay.json"
MEMORY_FILE = "replay_memory.json"
FILES = (HOST_COST_FILE, REPLAY_FILE, MEMORY_FILE)

SCHEMA = "1"
MEMORY_SCHEMA = "tidemark-memory-1"

# Google Benchmark appends these to a name; they say how it was measured, not what.
NAME_SUFFIX = re.compile(
    r"/(real_time|process_time|manual_time|(iterations|repeats|min_time|min_warmup_time|threads):[^/]*)$")
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
BLOCK_STATES = ("allocated", "inactive", "pending")
# A capacity from here on stands for "no limit".
UNLIMITED_BYTES = 1 << 60


class ResultError(Exception):
    """One line: file, what is wrong, what would be right."""


@dataclasses.dataclass
class HostCost:
    """One allocator under one pattern; times in ns, of one allocation and its free."""
    subject: str
    pattern: str
    size: str  # bytes as text, or "mixed"
    config: str
    real_ns: float
    percentiles_ns: dict  # "p50" ... "max": each call timed alone, the clock's own cost included
    clock_ns: float | None


@dataclasses.dataclass
class Stream:
    stream: int
    reserved_bytes: int
    allocated_bytes: int
    idle_bytes: int
    peak_idle_bytes: int


@dataclasses.dataclass
class Segment:
    address: int
    size: int
    stream: int
    pool: str
    blocks: list  # (offset, size, state)


@dataclasses.dataclass
class Memory:
    """Curves and final layout of one replay, from MEMORY_FILE."""
    source: str
    rules: str
    rules_assumed: bool
    recorded: bool
    series: dict  # "event", "reserved_bytes", "allocated_bytes", "active_bytes": lists of one length
    streams: list
    segments: list
    out_of_memory: dict | None
    self_check: dict | None


@dataclasses.dataclass
class Run:
    """One trace under one configuration. None: the file that would tell is absent."""
    trace: str
    config_name: str
    config: str
    peak_reserved_bytes: float
    peak_allocated_bytes: float
    counters: dict  # all counters of REPLAY_FILE; empty without it
    capacity_bytes: float | None  # None: no limit
    memory_fraction: float
    memory: Memory | None = None

    def counter(self, name):
        return self.counters.get(name)

    @property
    def out_of_memory(self):
        if self.memory is not None and self.memory.out_of_memory is not None:
            return True
        return bool(self.counters.get("out_of_memory", 0))

    @property
    def out_of_memory_event(self):
        if self.memory is not None and self.memory.out_of_memory is not None:
            return self.memory.out_of_memory["event"]
        return self.counters.get("out_of_memory_event") if self.out_of_memory else None

    @property
    def recorded(self):
        return self.memory is not None and self.memory.recorded

    @property
    def limit_bytes(self):
        """What the process may reserve: the capacity, or its fraction; None: no limit."""
        if self.capacity_bytes is None:
            return None
        return self.capacity_bytes * (self.memory_fraction or 1.0)

    @property
    def device_calls(self):
        mallocs, frees = self.counter("device_mallocs"), self.counter("device_frees")
        return None if mallocs is None or frees is None else mallocs + frees

    @property
    def fragmentation(self):
        if self.peak_reserved_bytes == 0:
            return 0.0
        return 1.0 - self.peak_allocated_bytes / self.peak_reserved_bytes


@dataclasses.dataclass
class Results:
    folder: str
    host_costs: list  # of HostCost
    runs: list  # of Run, in the order of the files
    contexts: dict  # file name -> its context
    notes: list  # sentences: what is absent or disagrees

    @property
    def traces(self):
        return list(dict.fromkeys(run.trace for run in self.runs))

    def runs_of(self, trace):
        return [run for run in self.runs if run.trace == trace]


class Reader:
    """A JSON value and the way to it, so that every complaint can say where it is."""

    def __init__(self, path, value, where=""):
        self.path, self.value, self.where = path, value, where

    def fail(self, problem, right):
        place = f"{self.where}: " if self.where else ""
        raise ResultError(f"{self.path}: {place}{problem}; expected {right}")

    def has(self, key):
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def get(self, key, right="this key"):
        if not isinstance(self.value, dict):
            self.fail(f"is {kind_of(self.value)}", "an object")
        if key not in self.value:
            self.fail(f'"{key}" is missing', right)
        return Reader(self.path, self.value[key], f"{self.where}.{key}" if self.where else key)

    def items(self):
        if not isinstance(self.value, list):
            self.fail(f"is {kind_of(self.value)}", "a list")
        return [Reader(self.path, value, f"{self.where}[{i}]") for i, value in enumerate(self.value)]

    def text(self):
        if not isinstance(self.value, str):
            self.fail(f"is {kind_of(self.value)}", "a text")
        return self.value

    def truth(self):
        if not isinstance(self.value, bool):
            self.fail(f"is {kind_of(self.value)}", "true or false")
        return self.value

    def number(self):
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            self.fail(f"is {kind_of(self.value)}", "a number")
        if not math.isfinite(self.value):
            self.fail(f"is {self.value}", "a finite number")
        if self.value < 0:
            self.fail(f"is {self.value}", "a number that is not negative")
        return self.value

    def numbers(self):
        """A list of numbers; checked in one go, since a curve has thousands."""
        if not isinstance(self.value, list):
            self.fail(f"is {kind_of(self.value)}", "a list of numbers")
        for i, value in enumerate(self.value):
            if type(value) not in (int, float) or not 0 <= value < math.inf:
                Reader(self.path, value, f"{self.where}[{i}]").number()
        return self.value


def kind_of(value):
    if value is None:
        return "null"
    return {dict: "an object", list: "a list", str: f'the text "{value}"', bool: str(value).lower()}.get(
        type(value), f"{value}")


def read_json(folder, name):
    """None if the file is absent."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"byte {error.start} is not UTF-8"
        raise ResultError(f"{path}: {reason}; expected a readable JSON file") from None
    if not text.strip():
        raise ResultError(f"{path}: the file is empty; expected a JSON object")
    try:
        return Reader(path, json.loads(text))
    except (ValueError, RecursionError) as error:
        what = getattr(error, "msg", "nested too deeply")
        line = f" at line {error.lineno}, column {error.colno}" if hasattr(error, "lineno") else ""
        raise ResultError(f"{path}: {what}{line}; expected a complete JSON object") from None


def read_context(reader):
    context = reader.get("context", 'the "context" object of docs/results.md')
    schema = context.get("tidemark_schema", f'"{SCHEMA}"').value
    if str(schema) != SCHEMA:
        context.fail(f'"tidemark_schema" is {schema}', f"{SCHEMA}, the version that this program reads")
    return context.value


def read_benchmarks(reader, prefix):
    """(name parts after the prefix, reader) of each benchmark; repetitions are joined by the fastest."""
    found = {}
    items = reader.get("benchmarks", "Google Benchmark's list").items()
    for item in items:
        if item.has("run_type") and item.value["run_type"] == "aggregate":
            continue
        name = item.get("name", f'a name "{prefix}/..."').text()
        if item.has("error_occurred") and item.value["error_occurred"]:
            item.fail(f"{name} failed: {item.value.get('error_message', 'no message')}", "a benchmark that succeeded")
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
            item.fail(f"the name has {len(parts)} parts after host_cost", "host_cost/SUBJECT/PATTERN/BYTES")
        percentiles = {name: item.get(f"{name}_ns", "the latency percentiles of docs/results.md").number()
                       for name in ("p50", "p90", "p99", "p999", "max")}
        costs.append(HostCost(
            subject=parts[0], pattern=parts[1], size=parts[2],
            config=item.get("label").text() if item.has("label") else "",
            real_ns=real_ns(item), percentiles_ns=percentiles,
            clock_ns=item.get("clock_ns").number() if item.has("clock_ns") else None))
    return costs


REPLAY_COUNTERS = ("events", "ns_per_event", "peak_reserved_bytes", "peak_allocated_bytes", "device_mallocs",
                   "device_frees", "retries", "out_of_memory")


def bounded(capacity):
    return capacity if 0 < capacity < UNLIMITED_BYTES else None


def read_replays(reader):
    runs = []
    for parts, item in read_benchmarks(reader, "replay"):
        if len(parts) < 2:
            item.fail(f"the name has {len(parts)} parts after replay", "replay/TRACE/CONFIG")
        for name in REPLAY_COUNTERS:
            item.get(name, "this counter of docs/results.md").number()
        # Counters are whatever else is a number: those of the schema, and what later programs add.
        counters = {key: Reader(item.path, value, f"{item.where}.{key}").number()
                    for key, value in item.value.items()
                    if isinstance(value, (int, float)) and not isinstance(value, bool)}
        runs.append(Run(
            trace="/".join(parts[:-1]), config_name=parts[-1],
            config=item.get("label").text() if item.has("label") else "",
            peak_reserved_bytes=counters["peak_reserved_bytes"],
            peak_allocated_bytes=counters["peak_allocated_bytes"], counters=counters,
            capacity_bytes=bounded(counters.get("capacity_bytes", 0)),
            memory_fraction=counters.get("memory_fraction", 0)))
    return runs


def read_series(reader):
    series = {key: reader.get(key).numbers()
              for key in ("event", "reserved_bytes", "allocated_bytes", "active_bytes")}
    for key, values in series.items():
        if len(values) != len(series["event"]):
            reader.fail(f'"{key}" has {len(values)} points and "event" {len(series["event"])}', "lists of one length")
    if not series["event"]:
        reader.fail("has no point", "at least one")
    return series


def read_segment(reader):
    segment = Segment(address=reader.get("address").number(), size=reader.get("size").number(),
                      stream=reader.get("stream").number(), pool=reader.get("pool").text(), blocks=[])
    for block in reader.get("blocks").items():
        if not isinstance(block.value, list) or len(block.value) != 3:
            block.fail(f"is {kind_of(block.value)}", "[offset, size, state]")
        offset, size, state = block.items()
        if state.text() not in BLOCK_STATES:
            state.fail(f'is "{state.value}"', " or ".join(f'"{name}"' for name in BLOCK_STATES))
        if offset.number() + size.number() > segment.size:
            block.fail(f"ends {offset.value + size.value} bytes into a segment of {segment.size}",
                       "a block inside its segment")
        segment.blocks.append((offset.value, size.value, state.value))
    return segment


def read_memory(reader):
    out_of_memory = self_check = None
    if reader.has("out_of_memory"):
        item = reader.get("out_of_memory")
        out_of_memory = {"event": item.get("event").number(), "size_bytes": item.get("size_bytes").number(),
                         "message": item.get("message").text()}
    if reader.has("self_check"):
        item = reader.get("self_check")
        self_check = {"exact": item.get("exact").truth(),
                      "first_difference": item.get("first_difference").text()}
        for key in ("blocks", "segments", "releases", "layout"):
            pair = item.get(key).numbers()
            if len(pair) != 2 or pair[0] > pair[1]:
                item.get(key).fail(f"is {pair}", "[equal, all]")
            self_check[key] = tuple(pair)
    streams = [Stream(**{key: item.get(key).number() for key in
                         ("stream", "reserved_bytes", "allocated_bytes", "idle_bytes", "peak_idle_bytes")})
               for item in reader.get("streams").items()]
    return Memory(source=reader.get("source").text(), rules=reader.get("rules").text(),
                  rules_assumed=reader.get("rules_assumed").truth(), recorded=reader.get("recorded").truth(),
                  series=read_series(reader.get("series")), streams=streams,
                  segments=[read_segment(item) for item in reader.get("segments").items()],
                  out_of_memory=out_of_memory, self_check=self_check)


def read_memories(reader):
    """(trace, configuration name) -> Run with its memory, peaks taken from the curves."""
    schema = reader.get("schema", f'"{MEMORY_SCHEMA}"').value
    if schema != MEMORY_SCHEMA:
        reader.fail(f'"schema" is {kind_of(schema)}', f'"{MEMORY_SCHEMA}", the version that this program reads')
    runs = {}
    for item in reader.get("runs", "the list of runs").items():
        trace, config_name = item.get("trace").text(), item.get("config_name").text()
        item.where = f"{item.where} ({trace}, {config_name})"
        if (trace, config_name) in runs:
            item.fail("the same trace and configuration come twice", "each once")
        memory = read_memory(item)
        runs[trace, config_name] = Run(
            trace=trace, config_name=config_name, config=item.get("config").text(),
            peak_reserved_bytes=max(memory.series["reserved_bytes"]),
            peak_allocated_bytes=max(memory.series["allocated_bytes"]), counters={},
            capacity_bytes=bounded(item.get("capacity_bytes").number()),
            memory_fraction=item.get("memory_fraction").number(), memory=memory)
    if not runs:
        reader.fail('"runs" is empty', "at least one run")
    return runs


def join(runs, memories, notes):
    """Gives each run of REPLAY_FILE its curves; what only one of the files has is kept and noted."""
    known = set()
    for run in runs:
        known.add((run.trace, run.config_name))
        twin = memories.get((run.trace, run.config_name))
        if twin is None:
            continue
        run.memory = twin.memory
        run.config = run.config or twin.config
        if twin.peak_reserved_bytes != run.peak_reserved_bytes:
            notes.append(f"{run.trace} under {run.config_name}: {REPLAY_FILE} has a peak of "
                         f"{run.peak_reserved_bytes:.0f} reserved bytes, the curve in {MEMORY_FILE} "
                         f"{twin.peak_reserved_bytes:.0f}.")
    only_memory = [run for key, run in memories.items() if key not in known]
    if runs and only_memory:
        notes.append(f"{len(only_memory)} runs of {MEMORY_FILE} are not in {REPLAY_FILE}.")
    without = [run for run in runs if run.memory is None]
    if memories and without:
        notes.append(f"{len(without)} runs of {REPLAY_FILE} have no curves in {MEMORY_FILE}.")
    return runs + only_memory


def note_gaps(results):
    """An interrupted run leaves some configurations of its last trace out."""
    names = {run.config_name for run in results.runs}
    for trace in results.traces:
        absent = sorted(names - {run.config_name for run in results.runs_of(trace)} - own_names(results, trace))
        if absent:
            results.notes.append(f"{trace} was not run under {', '.join(absent)}.")


def own_names(results, trace):
    """Configurations that belong to other traces alone: a recorded configuration is not run elsewhere."""
    return {run.config_name for run in results.runs if run.trace != trace and run.recorded}


def load(folder):
    """The results in a folder. Raises ResultError."""
    if not os.path.isdir(folder):
        problem = "is not a folder" if os.path.exists(folder) else "does not exist"
        raise ResultError(f"{folder}: {problem}; expected a folder with {', '.join(FILES)}")
    readers = {name: read_json(folder, name) for name in FILES}
    if not any(readers.values()):
        raise ResultError(f"{folder}: holds no results; expected at least one of {', '.join(FILES)}")
    results = Results(folder, [], [], {}, [])
    for name, reader in readers.items():
        if reader is not None:
            results.contexts[name] = read_context(reader)
    if readers[HOST_COST_FILE]:
        results.host_costs = read_host_costs(readers[HOST_COST_FILE])
    runs = read_replays(readers[REPLAY_FILE]) if readers[REPLAY_FILE] else []
    memories = read_memories(readers[MEMORY_FILE]) if readers[MEMORY_FILE] else {}
    for present, absent in ((REPLAY_FILE, MEMORY_FILE), (MEMORY_FILE, REPLAY_FILE)):
        if readers[present] and not readers[absent]:
            results.notes.append(f"{absent} is absent: an interrupted run, or a file not copied.")
    results.runs = join(runs, memories, results.notes)
    note_gaps(results)
    return results
