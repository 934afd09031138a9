"""What a run asked of its allocator beside a recording of the same program elsewhere, with a picture.

    bazel run //workload:compare -- RUN.tmt RECORDING [--out DIR]

The C program compares, prints and decides the exit status; with --out this one draws what it wrote.
"""

import os
import subprocess
import sys

from reports import program, requests
from reports.reader import ResultError

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare_tool")


def folder_of(argv):
    """The value of --out as the C program understands it, or None."""
    for place, word in enumerate(argv):
        if word == "--":
            break
        if word.startswith("--o") and "--out".startswith(word.split("=", 1)[0]):
            value = word.split("=", 1)[1] if "=" in word else "".join(argv[place + 1 : place + 2])
            return os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""), value)
    return None


def complain(text, status):
    print(f"compare: {text}", file=sys.stderr)
    return status


def main():
    status = subprocess.call([TOOL] + sys.argv[1:])
    if status < 0:
        return 128 - status
    folder = folder_of(sys.argv[1:])
    if status > 1 or folder is None:
        return status
    try:
        for path in requests.build(folder):
            print(path)
    except (ResultError, OSError) as error:
        return complain(error, 2)
    except ImportError as error:
        return complain(f"{error.name} is not installed; ./setup installs it", 3)
    return status


if __name__ == "__main__":
    sys.exit(program.run("compare", main))
