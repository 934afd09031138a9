"""Every benchmark, every bundled trace under several configurations, and the report.

    bazel run //bench:all
"""

import os
import sys

from bench import runner


def parse(argv):
    parser = runner.Parser(
        prog="all",
        allow_abbrev=False,
        description="Replays every bundled trace under allocator configurations, measures host "
        "cost, and writes the report.",
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


def job(run, argv, tools=None):
    options = parse(argv)
    tools = tools or runner.Tools()
    with runner.ResultFolder(options.out) as folder:
        shared = ["--out", folder, "--seed", options.seed] + (["--quick"] if options.quick else [])
        replay = [tools.replay] + shared
        for config in options.config or []:
            replay += ["--config", config]
        if options.capacity:
            replay += ["--capacity", options.capacity]
        # The replays come first: they are the ones that can refuse an option.
        runner.step(1, 3, f"replay of {len(tools.traces)} bundled traces")
        run.run(replay + tools.traces)
        runner.step(2, 3, "host cost of an allocation and its free")
        run.run([tools.host_cost] + shared)
        runner.step(3, 3, "report")
        runner.write_page(run, tools, folder, options.quick)
        replays = runner.benchmarks(os.path.join(folder, "replay.json"))
        host_costs = runner.benchmarks(os.path.join(folder, "host_cost.json"))
        for line in runner.replay_summary(replays) + runner.host_cost_summary(host_costs):
            print(line)
        runner.print_paths(folder)


if __name__ == "__main__":
    sys.exit(runner.main("all", job, sys.argv[1:]))
