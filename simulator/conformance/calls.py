"""Lists the CUDA calls that the simulator's headers declare, and those that each case makes.

    CALL_DECLARED("cudaFree")               by a header
    CALL_USED("free_null", "cudaFree")      by a case's function, or one of its file that it calls,
                                            or of a header *_cases.h that the file includes

usage: calls.py HEADER... -- CASES.c...

Both are plainly written: a declaration and a function's first line start at column 0, a function
ends with "}" there. A file that is compiled for per-thread default streams means the variants with
CUDA's suffixes.
"""

import os
import re
import sys


def declared(path):
    with open(path, encoding="utf-8") as file:
        for match in re.finditer(r"^(?:const )?\w+\s+\*?(cu\w+)\(", file.read(), re.M):
            yield match[1]


def functions(path):
    """Name and body of each function."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    body = r"\{(?: ([^\n]*) \}$|\n(.*?)^\}$)"
    for match in re.finditer(r"^static [\w ]+[ *](\w+)\([^;{]*\) " + body, text, re.M | re.S):
        yield match[1], match[2] or match[3] or ""


def used(path, names):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    per_thread = "#define CUDA_API_PER_THREAD_DEFAULT_STREAM" in text
    bodies = {}
    for header in re.findall(r'^#include ".*/(\w+_cases\.h)"', text, re.M):
        bodies.update(functions(os.path.join(os.path.dirname(path), header)))
    bodies.update(functions(path))
    words = {name: set(re.findall(r"\b\w+\b", body)) for name, body in bodies.items()}
    for name in re.findall(r'^ +CASE\w*\("[^"]+", "[^"]+", \w+, (\w+),', text, re.M):
        reached, open_names = set(), [name]
        while open_names:
            at = open_names.pop()
            if at not in reached:
                reached.add(at)
                open_names += words[at] & bodies.keys()
        calls = set().union(*(words[at] for at in reached))
        for call in sorted(calls):
            if per_thread:
                call = next((call + end for end in ("_ptds", "_ptsz") if call + end in names), call)
            if call in names:
                yield name, call


separator = sys.argv.index("--")
names = {call for path in sys.argv[1:separator] for call in declared(path)}
for call in sorted(names):
    print(f'CALL_DECLARED("{call}")')
for path in sys.argv[separator + 1 :]:
    for function, call in used(path, names):
        print(f'CALL_USED("{function}", "{call}")')
