"""Result folders for tests: made from a seed, of the shape that docs/results.md describes, with
numbers that agree with each other across the files.
"""

import json
import os
import random

MIB = 1 << 20
CONFIGS = {
    "default": "",
    "split128": "max_split_size_mb:128",
    "direct": "x_allocator:direct",
}
CONTEXT = {
    "date": "2026-01-02T03:04:05+00:00",
    "tidemark_schema": "1",
    "tidemark_version": "0.1",
    "tidemark_commit": "0123456789ab",
    "compiler": "gcc 12.2.0",
    "cuda": "simulator",
    "device": "a simulated device",
    "capacity_bytes": "85899345920",
    "topology": "1 package, 2 cores",
    "pinned_cpu": "1",
    "load_1min": "0.10",
    "seed": "7",
}


def blocks_of(generator, size):
    """Blocks that tile SIZE exactly."""
    blocks, offset = [], 0
    while offset < size:
        length = min(size - offset, 512 * generator.randint(1, size // 1024))
        state = generator.choice(["allocated", "inactive", "inactive", "pending"])
        blocks.append([offset, length, state])
        offset += length
    return blocks


def memory_run(generator, trace, config_name, config, event_count=400):
    reserved = allocated = 0
    series = {"event": [], "reserved_bytes": [], "allocated_bytes": [], "active_bytes": []}
    for event in range(event_count):
        allocated = max(0, allocated + generator.randint(-3, 4) * MIB)
        reserved = max(reserved, allocated + generator.randint(0, 9) * MIB)
        for key, value in zip(series, (event, reserved, allocated, allocated)):
            series[key].append(value)
    segments = []
    for index in range(4):
        size = (2, 20, 64, 20)[index] * MIB
        segments.append(
            {
                "address": 0x7F0000000000 + index * (1 << 30),
                "size": size,
                "stream": index // 3,
                "pool": "large" if index else "small",
                "blocks": blocks_of(generator, size),
            }
        )
    streams = [
        {
            "stream": number,
            "reserved_bytes": 40 * MIB,
            "allocated_bytes": 10 * MIB,
            "idle_bytes": 30 * MIB,
            "peak_idle_bytes": (33 + number) * MIB,
        }
        for number in range(2)
    ]
    check = {key: [9, 9] for key in ("blocks", "segments", "releases", "layout")}
    check.update(exact=True, first_difference="")
    return {
        "trace": trace,
        "source": "made for a test",
        "rules": "2.15",
        "rules_assumed": False,
        "config_name": config_name,
        "config": config,
        "recorded": config_name == "default",
        "capacity_bytes": 80 << 30,
        "memory_fraction": 0,
        "series": series,
        "streams": streams,
        "segments": segments,
        "out_of_memory": None,
        "self_check": check if config_name == "default" else None,
    }


def replay_benchmark(generator, run):
    peak_reserved = max(run["series"]["reserved_bytes"])
    peak_allocated = max(run["series"]["allocated_bytes"])
    out_of_memory = run["out_of_memory"]
    benchmark = {
        "name": f"replay/{run['trace']}/{run['config_name']}/manual_time",
        "run_type": "iteration",
        "iterations": 1,
        "real_time": 5.0e4,
        "cpu_time": 5.0e4,
        "time_unit": "ns",
        "label": run["config"],
        "events": len(run["series"]["event"]),
        "ns_per_event": generator.uniform(40, 90),
        "peak_reserved_bytes": float(peak_reserved),
        "peak_allocated_bytes": float(peak_allocated),
        "fragmentation": 1 - peak_allocated / peak_reserved,
        "device_mallocs": float(generator.randint(5, 500)),
        "device_frees": float(generator.randint(0, 5)),
        "retries": float(generator.randint(0, 3)),
        "out_of_memory": float(out_of_memory is not None),
        "capacity_bytes": float(80 << 30),
        "memory_fraction": 0.0,
        "modelled_device_s": 0.0025,
        "modelled_device_low_s": 0.0004,
        "modelled_device_high_s": 0.0091,
    }
    if out_of_memory is not None:
        benchmark["out_of_memory_event"] = float(out_of_memory["event"])
    return benchmark


SUBJECTS = ("ideal_list", "mutex_list", "caching", "direct", "async")


def host_cost_benchmarks(generator):
    benchmarks = []
    for pattern, size in (("pair", "512"), ("window", "4194304"), ("mixed", "mixed")):
        for place, subject in enumerate(SUBJECTS):
            time_ns = 4 * 3**place * generator.uniform(0.9, 1.1)
            percentiles = {
                f"{name}_ns": 20 + time_ns * factor
                for name, factor in (("p50", 1), ("p90", 2), ("p99", 3), ("p999", 9), ("max", 99))
            }
            benchmarks.append(
                {
                    "name": f"host_cost/{subject}/{pattern}/{size}",
                    "run_type": "iteration",
                    "real_time": time_ns,
                    "time_unit": "ns",
                    "clock_ns": 19.0,
                    **percentiles,
                }
            )
    return benchmarks


def two_threads_benchmarks(generator):
    return [
        {
            "name": f"host_cost_two_threads/{subject}/pair/512/{streams}",
            "run_type": "iteration",
            "real_time": generator.uniform(50, 300),
            "time_unit": "ns",
            "x_mutex_list": generator.uniform(0.5, 3),
            "x_one_thread": generator.uniform(0.5, 2),
        }
        for subject, streams in (
            ("mutex_list", "one_stream"),
            ("caching", "one_stream"),
            ("caching", "own_streams"),
        )
    ]


def replay_speed_benchmarks(generator):
    benchmarks = []
    for place, subject in enumerate(("caching", "mutex_list", "ideal_list")):
        event_ns = 64 / 4**place * generator.uniform(0.9, 1.1)
        benchmarks.append(
            {
                "name": f"replay_speed/{subject}/made_1000000",
                "run_type": "iteration",
                "real_time": event_ns * 1e6,
                "time_unit": "ns",
                "label": f"what {subject} is",
                "events": 1e6,
                "ns_per_event": event_ns,
                "events_per_second": 1e9 / event_ns,
            }
        )
    return benchmarks


def workload_benchmark(generator, program, place, config_name, config):
    step_ns = 3e6 * (1 + place) * generator.uniform(0.9, 1.1)
    allocated = generator.randint(100, 200) * MIB
    return {
        "name": f"workloads/{program}/{config_name}",
        "run_type": "iteration",
        "real_time": step_ns,
        "time_unit": "ns",
        "label": config,
        "out_of_memory": 0.0,
        "modelled": 1.0,
        "p50_ns": step_ns * 0.98,
        "p99_ns": step_ns * 1.3,
        "steps_per_second": 1e9 / step_ns,
        "peak_allocated_bytes": float(allocated),
        "peak_reserved_bytes": float(allocated + generator.randint(1, 90) * MIB),
        "device_mallocs": float(generator.randint(5, 500)),
        "device_frees": float(generator.randint(0, 5)),
        "retries": float(generator.randint(0, 3)),
        "first_stall_ns": step_ns * 2,
        "stall_ns": step_ns * 0.4,
        "wait_ns": step_ns * 0.1,
        "dry_ns": step_ns * 0.3,
        "allocator_share": generator.uniform(0.1, 0.5),
    }


def workloads_benchmarks(generator):
    """The last one of the second program runs out of memory."""
    benchmarks = [
        workload_benchmark(generator, program, place, name, config)
        for program in ("training", "threads")
        for place, (name, config) in enumerate(CONFIGS.items())
    ]
    kept = ("name", "run_type", "real_time", "time_unit", "label")
    benchmarks[-1] = {key: benchmarks[-1][key] for key in kept} | {"out_of_memory": 1.0}
    return benchmarks


def make(seed, traces=("alpha", "beta"), configs=None):
    """file name -> its content"""
    generator = random.Random(seed)
    runs = [
        memory_run(generator, trace, name, config)
        for trace in traces
        for name, config in (configs or CONFIGS).items()
    ]
    replays = [replay_benchmark(generator, run) for run in runs]
    return {
        "host_cost.json": {"context": CONTEXT, "benchmarks": host_cost_benchmarks(generator)},
        "host_cost_two_threads.json": {
            "context": CONTEXT,
            "benchmarks": two_threads_benchmarks(generator),
        },
        "replay.json": {"context": CONTEXT, "benchmarks": replays},
        "replay_memory.json": {"schema": "tidemark-memory-1", "context": CONTEXT, "runs": runs},
        "replay_speed.json": {"context": CONTEXT, "benchmarks": replay_speed_benchmarks(generator)},
        "workloads.json": {"context": CONTEXT, "benchmarks": workloads_benchmarks(generator)},
    }


def write(folder, files):
    os.makedirs(folder, exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
