"""Instructions that a pair of calls costs, counted by callgrind.

A pattern is played twice with different counts; the difference of the two runs, over the difference
of their pairs, is the pattern's own cost, with nothing of the start and the end in it. The count
includes the loop that calls, and the event calls of record_stream, which only answer.
"""

import os
import re
import shutil
import tempfile

# Pattern, iterations of the shorter and the longer run, and how many instructions a pair may take.
PATTERNS = (
    ("window_512", 5000, 25000, 380),
    ("window_64k", 5000, 25000, 380),
    ("window_4m", 5000, 25000, 380),
    ("pair_512", 5000, 25000, 450),
    ("pair_4m", 5000, 25000, 450),
    ("mixed", 5000, 25000, 570),
    ("transformer", 4, 24, 570),
    ("record_stream", 5000, 25000, None),
)
COLLECTED = re.compile(r"Collected : (\d+)")
PAIRS = re.compile(r": (\d+) pairs")


class Unreadable(Exception):
    """callgrind or the program said something else than expected."""


def number(expression, text):
    found = expression.search(text)
    if not found:
        raise Unreadable(f"no '{expression.pattern}' in: {text.strip()[-200:]}")
    return int(found.group(1))


def count_one(run, valgrind, tool, folder, pattern, subject, iterations):
    """(instructions of the whole run, pairs in it)."""
    log = os.path.join(folder, "log")
    output = run.run(
        # hwloc would ask the CPU, which valgrind does not let it do.
        ["env", "HWLOC_COMPONENTS=-x86", valgrind, "--tool=callgrind", f"--log-file={log}"]
        + [f"--callgrind-out-file={os.path.join(folder, 'out')}", tool]
        + ["--only", pattern, "--subject", subject, "--iterations", str(iterations)]
    )
    with open(log, encoding="utf-8", errors="replace") as file:
        return number(COLLECTED, file.read()), number(PAIRS, output)


def of_pair(run, valgrind, tool, pattern, subject, few, many):
    with tempfile.TemporaryDirectory(prefix="tidemark-instructions-") as folder:
        start = count_one(run, valgrind, tool, folder, pattern, subject, few)
        end = count_one(run, valgrind, tool, folder, pattern, subject, many)
    return (end[0] - start[0]) / (end[1] - start[1])


def row(pattern, counted, limit, beside):
    line = f"  {pattern:<44}{counted:>10.0f}"
    if limit is None:
        line += " " * 24
    else:
        verdict = "yes" if counted <= limit else "NO"
        line += f"  at most {limit:>10}  {verdict:<3}"
    return line + (f"  mutex_list {beside:.0f}" if beside is not None else "")


def lines(run, tool, patterns=PATTERNS):
    """The table, line by line as it is counted; or the one line that says what is missing."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        yield "Instructions of a pair: not counted, there is no valgrind (Debian package valgrind)"
        return
    yield "Instructions of a pair, its loop in it (callgrind)"
    for pattern, few, many, limit in patterns:
        counted = of_pair(run, valgrind, tool, pattern, "caching", few, many)
        beside = None
        if pattern != "record_stream":  # the lists know no streams
            beside = of_pair(run, valgrind, tool, pattern, "mutex_list", few, many)
        yield row(pattern, counted, limit, beside)
