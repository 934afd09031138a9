"""The user's own snapshots and traces under allocator configurations, and the report.

    bazel run //bench:replay -- FILE...

Options are those of the C program, which checks them and prints the ranking; this program gives it
a result folder and shows the page at the end.
"""

import os
import subprocess
import sys

from bench import runner


def split_out(argv):
    """The value of --out, and the other arguments unchanged."""
    out, rest, i = None, [], 0
    while i < len(argv):
        if argv[i] == "--out":
            if i + 1 == len(argv):
                raise runner.Stop(2, "option '--out' requires an argument\nTry 'replay --help'")
            out, i = argv[i + 1], i + 1
        elif argv[i].startswith("--out="):
            out = argv[i][len("--out=") :]
        elif argv[i] == "--":
            rest += argv[i:]
            break
        else:
            rest.append(argv[i])
        i += 1
    return out, rest


def job(run, argv, tools=None):
    tools = tools or runner.Tools()
    out, rest = split_out(argv)
    if any(word in ("--help", "--usage") for word in rest) or not rest:
        raise runner.Stop(subprocess.call([tools.replay] + rest))
    with runner.ResultFolder(out) as folder:
        failure = None
        try:
            run.run([tools.replay, "--out", folder] + rest, show=True)
        except runner.Stop as stop:
            # One file of several could not be read: the others get their page all the same.
            if run.caught is not None or not os.path.exists(os.path.join(folder, "replay.json")):
                raise
            failure = stop
        runner.write_page(run, tools, folder, "--quick" in rest)
        runner.print_paths(folder)
    if failure:
        raise failure


if __name__ == "__main__":
    sys.exit(runner.main("replay", job, sys.argv[1:]))
