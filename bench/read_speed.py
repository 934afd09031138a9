"""Snapshot reading beside Python's pickle.load of the same file.

    bazel run //bench:read_speed -- [--size 1GiB] [FILE]

Each reading is a process of its own on a file that is in the page cache: the time is the CPU time
of the reading call alone (both readers have one thread, and CPU time stays true when others want
the CPU), the peak memory that of the whole process as the kernel counts it. Readings alternate; the
ratio is that of the fastest ones. Wanted: at least 8 times as fast, with at most half the file's
size plus 64 MiB. Exit status 1 if one of the two is missed.
"""

import json
import os
import subprocess
import sys
import tempfile

from bench import runner, summary
from reports import program

RATIO_LIMIT = 8.0
MEMORY_SHARE = 0.5
MEMORY_EXTRA = 64 << 20

# The reference: what torch.cuda.memory's own tools do with a snapshot.
PICKLE_LOAD = """
import json, pickle, sys, time
start = time.process_time()
with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
seconds = time.process_time() - start
segments = snapshot["segments"] if isinstance(snapshot, dict) else snapshot
traces = snapshot["device_traces"] if isinstance(snapshot, dict) else []
counts = {
    "events": sum(len(trace) for trace in traces),
    "segments": len(segments),
    "blocks": sum(len(segment["blocks"]) for segment in segments),
}
print(json.dumps({"seconds": seconds, **counts}))
sys.stdout.flush()
import os
os._exit(0)  # taking the objects apart takes longer than it is worth
"""
PICKLE_READER = [sys.executable, "-c", PICKLE_LOAD]


def parse(argv):
    parser = program.Parser(
        prog="read_speed",
        description="Reads a snapshot with Tidemark's reader and with Python's pickle.load; "
        "prints times and peak memory.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="a snapshot pickle, plain (default: one is made)"
    )
    parser.add_argument(
        "--size", metavar="SIZE", default="256MiB", help="of the snapshot to make (default 256MiB)"
    )
    parser.add_argument(
        "--seed", metavar="N", default="1", help="of the snapshot to make (default 1)"
    )
    parser.add_argument(
        "--rounds", metavar="N", type=int, default=3, help="readings by each (default 3)"
    )
    return parser.parse_args(argv)


def reading(arguments):
    """Runs one reading; returns what it printed, with the peak memory of its process in bytes."""
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    output = child.stdout.read()
    child.stdout.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise runner.Stop(max(child.returncode, 1), f"{os.path.basename(arguments[0])} failed")
    return {**json.loads(output), "peak_bytes": usage.ru_maxrss * 1024}


def check_counts(ours, theirs, path):
    """Both readers must have found the same."""
    for what in ("events", "segments", "blocks"):
        if ours[what] != theirs[what]:
            found = f"{ours[what]} {what}, pickle.load {theirs[what]}"
            raise runner.Stop(1, f"{path}: the reader found {found}")


def memory_limit(size):
    return int(size * MEMORY_SHARE) + MEMORY_EXTRA


def compare(tool, path, rounds):
    """Prints the comparison; True if both limits are kept."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        while file.read(16 << 20):  # into the page cache, so that no reading pays for the disk
            pass
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(reading(PICKLE_READER + [path]))
        ours.append(reading([tool, path]))
    check_counts(ours[0], theirs[0], path)
    our_s, their_s = (min(one["seconds"] for one in many) for many in (ours, theirs))
    our_peak, their_peak = (max(one["peak_bytes"] for one in many) for many in (ours, theirs))
    limit, ratio, text = memory_limit(size), their_s / our_s, summary.size_text
    print(f"{path}: {text(size)}, {ours[0]['events']:,} events")
    for name, seconds, peak in (
        ("tidemark", our_s, our_peak),
        ("pickle.load", their_s, their_peak),
    ):
        rate = text(size / seconds)
        print(f"  {name:<11} {seconds:8.3f} s CPU  {rate:>9}/s  peak memory {text(peak)}")
    print(f"  {ratio:.1f} times as fast as pickle.load; wanted: at least {RATIO_LIMIT:.0f}")
    print(f"  peak memory {text(our_peak)}; wanted: at most {text(limit)} (size/2 + 64 MiB)")
    return ratio >= RATIO_LIMIT and our_peak <= limit


def job(run, argv):
    options = parse(argv)
    if options.rounds < 1:
        raise runner.Stop(2, f"--rounds is {options.rounds}; at least 1 is needed")
    root = runner.Tools().root
    tool = os.path.join(root, "bench/read_speed_tool")
    with tempfile.TemporaryDirectory(prefix="tidemark-read-speed-") as folder:
        if options.file:
            path = runner.user_path(options.file)
            if not os.path.isfile(path):
                raise runner.Stop(2, f"{path}: no such file")
        else:
            path = os.path.join(folder, "made.pickle")
            make = [os.path.join(root, "trace/make"), "--format", "pickle"]
            run.run(make + ["--size", options.size, "--seed", options.seed, path])
        if not compare(tool, path, options.rounds):
            raise runner.Stop(1, "a limit is missed")


if __name__ == "__main__":
    sys.exit(runner.main("read_speed", job, sys.argv[1:]))
