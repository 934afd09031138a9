"""What //bench:all and //bench:replay share: result folder, child programs, interrupts, summary.

Results are kept: a folder that holds something is never written into, the next free name is used
instead. A step that fails or is interrupted leaves the files of the steps before it, and a file
appears only when it is complete, so that what stands in the folder can always be read. Everything
measured is measured by the C programs; nothing is computed here but the ranking printed at the end.
"""

import argparse
import glob
import json
import math
import os
import signal
import subprocess
import sys
import time

RESULT_FOLDER = "tidemark-results"

class Stop(Exception):
    """Ends the program: the exit status, and one line for the user if nobody has told yet."""

    def __init__(self, status, message=""):
        super().__init__(message)
        self.status = status
        self.message = message


class Parser(argparse.ArgumentParser):
    """Wrong usage is one line and a pointer to --help, as the C programs word it."""

    def error(self, message):
        sys.stderr.write(f"{self.prog}: {message}\nTry '{self.prog} --help'\n")
        sys.exit(2)


class Tools:
    """The programs and traces, where Bazel put them: the runfiles beside this module."""

    def __init__(self, root=None):
        self.root = root = root or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.host_cost = os.path.join(root, "bench/host_cost")
        self.replay = os.path.join(root, "bench/replay_tool")
        self.page = os.path.join(root, "reports/page")
        self.traces = sorted(glob.glob(os.path.join(root, "trace/**/*.tmt"), recursive=True))


def user_path(path):
    """A path as the user meant it: relative to where they stood, not where Bazel runs us."""
    return os.path.abspath(os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", "."), path))


def out_folder(asked):
    """Makes the result folder; returns its path: ASKED if new or empty, else ASKED-2 ..."""
    now = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
    base = user_path(asked or os.path.join(RESULT_FOLDER, now))
    path, number = base, 1
    while True:
        try:
            os.makedirs(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise Stop(2, f"{path}: is a file; --out takes a folder") from None
            try:
                occupied = bool(os.listdir(path))
            except OSError as error:
                raise Stop(2, f"{path}: cannot be read: {error.strerror}") from None
            if occupied:
                number += 1
                path = f"{base}-{number}"
                continue
        except OSError as error:
            raise Stop(2, f"{path}: cannot make this folder: {error.strerror}") from None
        if not os.access(path, os.W_OK | os.X_OK):
            raise Stop(2, f"{path}: no right to write here; choose another folder with --out")
        if path != base:
            sys.stderr.write(f"{base} holds results already; writing to {path}\n")
        return path


class Runner:
    """Runs one program after the other; passes Ctrl-C and SIGTERM on, once, to stop it cleanly."""

    def __init__(self, name):
        self.name = name
        self.child = None
        self.caught = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number, _frame):
        self.caught = number
        if self.child is not None and self.child.poll() is None:
            self.child.send_signal(number)

    def check_interrupt(self):
        if self.caught is not None:
            raise Stop(128 + self.caught, "interrupted")

    def run(self, arguments, show=False, hold_errors=False):
        """Runs a program to its end; returns its output, or passes it through with SHOW.

        Raises Stop if it fails. HOLD_ERRORS: shows its stderr at the end, unless it was interrupted:
        a Python program then says no more than where it was.
        """
        self.check_interrupt()
        sys.stdout.flush()
        # A process group of its own: the terminal's Ctrl-C reaches this process only, and the
        # program gets it once.
        try:
            self.child = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=None if show else subprocess.PIPE,
                stderr=subprocess.PIPE if hold_errors else None,
                text=True,
                process_group=0,
            )
        except OSError as error:
            raise Stop(3, f"{arguments[0]}: cannot be started: {error.strerror}") from None
        if self.caught is not None:  # came between the check and the start
            self.child.send_signal(self.caught)
        output, errors = self.child.communicate()
        status, program = self.child.returncode, os.path.basename(arguments[0])
        self.child = None
        self.check_interrupt()
        sys.stderr.write(errors or "")
        if status < 0:
            raise Stop(1, f"{program} was ended by {signal.Signals(-status).name}")
        if status != 0:
            raise Stop(status)  # the program has said what is wrong, on the same stderr
        return output or ""


def step(number, count, text):
    print(f"[{number}/{count}] {text}", flush=True)


def main(name, job, argv):
    """Calls job(runner, argv) and turns its end into an exit status."""
    runner = Runner(name)
    try:
        job(runner, argv)
        return 0
    except Stop as stop:
        if stop.message:
            sys.stderr.write(f"{name}: {stop.message}\n")
        return stop.status


class ResultFolder:
    """`with ResultFolder(asked) as folder`: if the work stops early, says what is kept.

    An empty folder is then taken away.
    """

    def __init__(self, asked):
        self.asked = asked

    def __enter__(self):
        self.path = out_folder(self.asked)
        return self.path

    def __exit__(self, kind, _error, _traceback):
        if kind is None:
            return
        kept = sorted(os.listdir(self.path))
        if kept:
            sys.stderr.write(f"kept in {self.path}: {', '.join(kept)}\n")
        else:
            os.rmdir(self.path)


def write_page(run, tools, folder, quick):
    run.run([tools.page, folder] + (["--quick"] if quick else []), hold_errors=True)


def print_paths(folder):
    """The page first, then the folder."""
    pages = sorted(glob.glob(os.path.join(folder, "*.html")))
    for page in pages:
        print(f"Page: {page}")
    print(f"Results: {folder}")


# -------------------------------------------------------------------------------------------------
# The summary.


def benchmarks(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["benchmarks"]
    except FileNotFoundError:
        return []


def size_text(size):
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.3g} {unit}" if size < 1000 else f"{size:.0f} {unit}"
        size /= 1024


def is_limit(run):
    """True without a cache: such a run shows what is possible, it is no setting to run."""
    first = run.get("label", "").split(",")[0]
    return first.startswith("x_allocator:") and first != "x_allocator:caching"


def failed(run):
    return bool(run.get("out_of_memory"))


def order(run):
    """Sort key: settings before limits, less memory first; equal ones in the same order always."""
    memory, calls = run["peak_reserved_bytes"], run["device_mallocs"]
    return (failed(run), is_limit(run), memory, calls, run["name"])


def memory_text(run):
    return "out of memory" if failed(run) else size_text(run["peak_reserved_bytes"])


def replay_summary(runs):
    """Lines: the best setting of each trace, then settings over all traces."""
    traces, configs = {}, {}
    for run in runs:
        _, trace, config = run["name"].split("/", 2)
        traces.setdefault(trace, {})[config] = run
        configs.setdefault(config, {})[trace] = run
    if not traces:
        return []
    baseline = "default" if "default" in configs else next(iter(configs))
    width = max(len(trace) for trace in traces)
    lines = [f"Peak reserved memory of the best setting, beside {baseline}:"]
    for trace, by_config in traces.items():
        best = min(by_config, key=lambda name: order(by_config[name]))
        line = f"  {trace:<{width}}  {best:<16} {memory_text(by_config[best]):>9}"
        if baseline in by_config and best != baseline:
            line += f"   {baseline} {memory_text(by_config[baseline])}"
        lines.append(line)
    complete = {name: many for name, many in configs.items() if len(many) == len(traces)}
    if len(traces) > 1 and len(complete) > 1 and baseline in complete:
        lines.append(
            f"Settings over all {len(traces)} traces: peak reserved memory, times {baseline} "
            "(geometric mean); host time of one allocation or free:"
        )
        lines += config_lines(complete, baseline)
    return lines


def config_lines(configs, baseline):
    """CONFIGS: name -> trace -> run; every one has every trace."""
    rows = []
    for name, by_trace in configs.items():
        quotients = [
            run["peak_reserved_bytes"] / configs[baseline][trace]["peak_reserved_bytes"]
            for trace, run in by_trace.items()
            if not failed(run) and not failed(configs[baseline][trace])
        ]
        quotients = [quotient for quotient in quotients if quotient > 0]
        mean = math.inf
        if quotients:
            mean = math.exp(sum(math.log(quotient) for quotient in quotients) / len(quotients))
        many = by_trace.values()
        host_ns = sum(run["ns_per_event"] for run in many) / len(many)
        limit = any(is_limit(run) for run in many)
        rows.append((limit, sum(failed(run) for run in many), mean, host_ns, name))
    lines = []
    for limit, failures, mean, host_ns, name in sorted(rows):
        mean_text = f"{mean:.3f}x" if mean < math.inf else "-"
        line = f"  {name:<16} {mean_text:>7} {host_ns:8.1f} ns"
        if failures:
            line += f"   out of memory in {failures}"
        lines.append(line + ("   no cache: every request calls the device" if limit else ""))
    return lines


def host_cost_summary(runs):
    """One line: the caching allocator's cost of a cache hit beside the one-mutex limit."""
    cells = []
    for run in runs:
        parts = run["name"].split("/")
        if parts[:2] == ["host_cost", "caching"] and "x_mutex_list" in run:
            size = "" if parts[3] == "mixed" else " " + size_text(int(parts[3]))
            cells.append(f"{parts[2]}{size} {run['x_mutex_list']:.1f}x ({run['real_time']:.0f} ns)")
    if not cells:
        return []
    head = "Host cost of a cache hit, times that of a free list under one mutex: "
    return [head + ", ".join(cells)]
