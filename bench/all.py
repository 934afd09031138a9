"""Every benchmark, every bundled trace under several configurations, and the report.

    bazel run //bench:all
"""

import os
import signal

if __name__ == "__main__":
    # The other imports take a moment, and Ctrl-C within it would show a traceback of them.
    signal.signal(signal.SIGINT, lambda number, _frame: os._exit(128 + number))

import sys
import tempfile

from bench import runner, summary
from reports import program

SPEED_EVENT_COUNT = 1000000


def parse(argv):
    parser = program.Parser(
        prog="all",
        description="Replays every bundled trace and runs every workload under allocator "
        "configurations, measures host cost, limits and replay speed, and writes the report.",
        epilog="Without --config: those of //bench:replay, six of them.",
    )
    parser.add_argument(
        "--out", metavar="DIR", help=f"result folder (default {runner.RESULT_FOLDER}/<UTC time>)"
    )
    parser.add_argument("--quick", action="store_true", help="a short run: fewer repetitions")
    parser.add_argument(
        "--config",
        metavar="NAME=CONF",
        action="append",
        help="an allocator configuration in PyTorch's syntax and a name for it; "
        "may be given several times",
    )
    parser.add_argument(
        "--seed", metavar="N", default="1", help="seed of everything random (default 1)"
    )
    parser.add_argument(
        "--capacity", metavar="SIZE", help="memory of the replays' device (default: as recorded)"
    )
    return parser.parse_args(argv)


def measure_replay_speed(run, tools, shared, seed):
    with tempfile.TemporaryDirectory(prefix="tidemark-all-") as folder:
        path = os.path.join(folder, f"made_{SPEED_EVENT_COUNT}.tmt")
        run.run([tools.make, "--events", str(SPEED_EVENT_COUNT), "--seed", seed, path])
        run.run([tools.replay_speed] + shared + [path])


def job(run, argv, tools=None):
    options = parse(argv)
    tools = tools or runner.Tools()
    limits = []  # the lines of the allocator's table

    def steps(folder):
        shared = ["--out", folder, "--seed", options.seed] + (["--quick"] if options.quick else [])
        configs = []
        for config in options.config or []:
            configs += ["--config", config]
        replay = [tools.replay] + shared + configs
        if options.capacity:
            replay += ["--capacity", options.capacity]
        # The replays come first: they are the ones that can refuse an option.
        simulated = os.path.exists(tools.simulator)
        captures = os.path.exists(tools.capture)
        tensors = os.path.exists(tools.tensor)
        count = 6 + simulated + captures + tensors
        traces = len(tools.traces)
        runner.step(1, count, f"replay of {traces} bundled traces under allocator settings")
        run.run(replay + tools.traces)
        runner.step(2, count, "host cost of an allocation and its free")
        run.run([tools.host_cost] + shared)
        runner.step(3, count, "cost of the caching allocator, beside its limits")
        # In its short form: //bench:allocator takes some minutes.
        table = run.run([tools.allocator, "--quick"] + shared + tools.recorded())
        limits.extend(["", "Cost of the caching allocator, beside its limits"] + table.splitlines())
        runner.step(4, count, f"replay speed over {SPEED_EVENT_COUNT:,} allocations and frees")
        measure_replay_speed(run, tools, shared, options.seed)
        runner.step(5, count, "programs that use memory as models do, under allocator settings")
        run.run([tools.workloads] + shared + configs)
        if simulated:
            runner.step(6, count, "host cost of the simulated device")
            run.run([tools.simulator] + shared)
        if tensors:
            runner.step(6 + simulated, count, "cost of tensors, beside its limits")
            table = run.run([tools.tensor, "--quick"] + shared)
            limits.extend(["", "Cost of tensors, beside its limits"] + table.splitlines())
        if captures:
            runner.step(count - 1, count, "graph captures, with reuse inside them and without")
            table = run.run([tools.capture, "--quick"] + shared)
            limits.extend(["", "Graph captures"] + table.splitlines())
        runner.step(count, count, "report")

    def summarize(folder):
        return summary.all_lines(folder) + limits

    runner.measure(run, tools, options.out, options.quick, steps, summarize)


if __name__ == "__main__":
    sys.exit(runner.main("all", job, sys.argv[1:]))
