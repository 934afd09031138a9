"""The figures of device profiles as a Markdown table, for docs/cost-model.md.

    bazel run //simulator:profile_table -- PROFILE...
"""

import pathlib
import sys

UNITS = {"ns", "us", "ms", "s", "GB/s", "TB/s", "GFLOP/s", "TFLOP/s"}


def read(path):
    """Figure to (value as text, source). What checks a profile is profile_read.c."""
    figures = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        left, source = line.split("|", 1)
        figure, *words = left.split()
        if len(words) == 4 and words[3] in UNITS:
            low, typical, high, unit = words
            value = f"{typical} ({low} to {high}) {unit}" if low != high else f"{typical} {unit}"
        else:
            value = " ".join(words)
        figures[figure] = (value, source.strip())
    return figures


def table(paths):
    profiles = {path.stem: read(path) for path in sorted(paths)}
    names = list(profiles)
    lines = [f"| figure | {' | '.join(names)} | source |", "|---" * (len(names) + 2) + "|"]
    for figure in dict.fromkeys(figure for name in names for figure in profiles[name]):
        values, sources = zip(*(profiles[name].get(figure, ("", "")) for name in names))
        if len(set(sources)) == 1:
            source = sources[0]
        else:
            source = "; ".join(f"{name}: {text}" for name, text in zip(names, sources) if text)
        lines.append(f"| `{figure}` | {' | '.join(values)} | {source} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(map(pathlib.Path, sys.argv[1:])))
