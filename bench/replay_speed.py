"""Replay speed of a made trace of a million allocations and frees.

    bazel run //bench:replay_speed -- [--events N] [--quick] [--out DIR] [FILE]

Makes the trace (or takes FILE) and replays it on the caching allocator, accounting only, beside a
free list under one mutex and one without a lock, in the same run.
"""

import os
import sys
import tempfile

from bench import runner
from reports import program


def parse(argv):
    parser = program.Parser(
        prog="replay_speed",
        description="Replays a made trace on the caching allocator beside the limits of any "
        "allocator.",
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="a trace (default: one is made)")
    parser.add_argument(
        "--events", metavar="N", default="1000000", help="of the trace to make (default 1000000)"
    )
    parser.add_argument("--seed", metavar="N", default="1", help="of the trace to make (default 1)")
    parser.add_argument("--quick", action="store_true", help="a short run: fewer rounds")
    parser.add_argument("--out", metavar="DIR", help="folder for replay_speed.json")
    return parser.parse_args(argv)


def job(run, argv):
    options = parse(argv)
    root = runner.Tools().root
    replay = [os.path.join(root, "bench/replay_speed_tool"), "--seed", options.seed]
    replay += ["--quick"] if options.quick else []
    runner.check_out(options.out)
    replay += ["--out", runner.user_path(options.out)] if options.out else []
    with tempfile.TemporaryDirectory(prefix="tidemark-replay-speed-") as folder:
        if options.file:
            path = runner.user_path(options.file)
        else:
            path = os.path.join(folder, f"made_{options.events}.tmt")
            make = [os.path.join(root, "trace/make"), "--events", options.events]
            run.run(make + ["--seed", options.seed, path])
        run.run(replay + [path], show=True)


if __name__ == "__main__":
    sys.exit(runner.main("replay_speed", job, sys.argv[1:]))
