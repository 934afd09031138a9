"""What result files hold, as records. load.py makes them; all else in this room reads them."""

import dataclasses

# A capacity from here on stands for "no limit".
UNLIMITED_BYTES = 1 << 60


def bounded(capacity):
    return capacity if 0 < capacity < UNLIMITED_BYTES else None


@dataclasses.dataclass
class HostCost:
    """One allocator under one pattern; times in ns, of one allocation and its free (in each
    thread).
    """

    subject: str
    pattern: str
    size: str  # bytes as text, or "mixed"
    config: str
    real_ns: float
    times_mutex: float | None  # against the one-mutex limit of the same run: median over rounds
    percentiles_ns: (
        dict  # "p50" ... "max": each pair timed alone, clock included; two threads: empty
    )
    clock_ns: float | None = None
    streams: str = ""  # two threads: "one_stream" or "own_streams"
    times_one_thread: float | None = None  # two threads: throughput of both against one alone


@dataclasses.dataclass
class ReplaySpeed:
    """One allocator under the requests of one long trace."""

    trace: str
    subject: str
    config: str
    events: float
    ns_per_event: float
    events_per_second: float


@dataclasses.dataclass
class Workload:
    """One program that uses memory under one configuration. Times in ns, of a step."""

    program: str
    config_name: str
    config: str
    out_of_memory: bool  # nothing else is known then
    mean_ns: float = 0.0
    counters: dict = dataclasses.field(default_factory=dict)

    def counter(self, name):
        return self.counters.get(name)

    @property
    def modelled(self):
        return bool(self.counters.get("modelled"))

    @property
    def device_calls(self):
        return self.counters["device_mallocs"] + self.counters["device_frees"]


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
    series: (
        dict  # "event", "reserved_bytes", "allocated_bytes", "active_bytes": lists of one length
    )
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
    def ended_early(self):
        """True if the replay ended for want of memory."""
        if self.memory is not None and self.memory.out_of_memory is not None:
            return True
        return bool(self.counters.get("out_of_memory", 0))

    @property
    def failed_as_recorded(self):
        """True if requests failed that had failed in the recording, so that the replay went on."""
        return not self.ended_early and self.counters.get("ooms", 0) > 0

    @property
    def out_of_memory(self):
        """True if a request was not served; another setting may have served it."""
        return self.ended_early or self.failed_as_recorded

    @property
    def out_of_memory_event(self):
        """Where the replay ended; None if it did not, or if the files do not tell."""
        if self.memory is not None and self.memory.out_of_memory is not None:
            return self.memory.out_of_memory["event"]
        return self.counters.get("out_of_memory_event") if self.ended_early else None

    @property
    def recorded(self):
        return self.memory is not None and self.memory.recorded

    @property
    def limit_bytes(self):
        """What the process may reserve: the capacity, or its fraction; None: no limit, or one
        that the files do not tell.
        """
        if self.counters.get("limit_bytes"):
            return bounded(self.counters["limit_bytes"])
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
    host_costs: list  # of HostCost, one thread
    two_threads: list  # of HostCost, two threads
    runs: list  # of Run, in the order of the files
    contexts: dict  # file name -> its context
    notes: list  # sentences: what is absent or disagrees
    replay_speeds: list = dataclasses.field(default_factory=list)  # of ReplaySpeed
    workloads: list = dataclasses.field(default_factory=list)  # of Workload

    @property
    def traces(self):
        return list(dict.fromkeys(run.trace for run in self.runs))

    def runs_of(self, trace):
        return [run for run in self.runs if run.trace == trace]
