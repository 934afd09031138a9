"""What the caching allocator costs on the host, as a table of limits; and its instruction counts.

    bazel run //bench:allocator -- [--quick] [--filter REGEX] [--out DIR] [TRACE...]

Options are those of the C program, which measures and checks. This program gives it the recorded
traces (the bundled ones, and those of ../shared/data/pytorch where that lies beside the checkout)
before those that are named, and counts instructions behind a whole run.
"""

import glob
import os
import subprocess
import sys

from bench import instructions, runner

RECORDED_ELSEWHERE = "../shared/data/pytorch"
# Options of the C program that leave the instruction counts out: it measures a part, or nothing, or
# prints for a program.
PART = ("--filter", "--only", "--smoke", "--format", "--help", "--usage", "--version")


def recorded(tools):
    """Recorded programs, each once, those beside the checkout too."""
    folder = os.path.join(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ""), RECORDED_ELSEWHERE)
    found = sorted(glob.glob(os.path.join(folder, "*.pickle*")))
    return tools.recorded() + [path for path in found if "__" not in os.path.basename(path)]


def is_part(argv):
    return any(word.split("=", 1)[0] in PART for word in argv)


def job(run, argv, tools=None):
    tools = tools or runner.Tools()
    if any(word in ("--help", "--usage") for word in argv):
        raise runner.Stop(subprocess.call([tools.allocator] + argv))
    try:
        run.run([tools.allocator] + recorded(tools) + argv, show=True)
    except runner.Stop as stop:
        if stop.status == run.status:
            stop.message = ""  # the program, which has the same name, has said it
        raise
    if is_part(argv):
        return
    print()
    try:
        for line in instructions.lines(run, tools.allocator):
            print(line, flush=True)
    except instructions.Unreadable as wrong:
        raise runner.Stop(1, f"counting instructions: {wrong}") from None


if __name__ == "__main__":
    sys.exit(runner.main("allocator", job, sys.argv[1:]))
