"""The page of a result folder: DIR/index.html and DIR/figures/. Usage: page DIR"""

import argparse
import html
import os
import sys

from reports import load


def write_file(path, text):
    """The file appears under its name when it is complete."""
    temporary = f"{path}.part"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def build(folder, quick=False, note=""):
    """Writes the page of FOLDER; returns the paths written, index.html first. Raises load.ResultError.

    quick: fewer pixels. note: a sentence for the head of the page ("The run was interrupted.").
    """
    results = load.load(folder)
    rows = "".join(f"<tr><td>{html.escape(run.trace)}</td><td>{html.escape(run.config_name)}</td>"
                   f"<td>{run.peak_reserved_bytes:.0f} B</td></tr>" for run in results.runs)
    path = os.path.join(folder, "index.html")
    write_file(path, f"<!doctype html><html lang=en><meta charset=utf-8><title>Tidemark</title><p>{html.escape(note)}</p>"
                     f"<table>{rows}</table></html>\n")
    return [path]


def main():
    parser = argparse.ArgumentParser(prog="page", description="Writes DIR/index.html and DIR/figures/ from the result files in DIR.")
    parser.add_argument("folder", metavar="DIR", help="a folder with host_cost.json, replay.json, replay_memory.json")
    parser.add_argument("--quick", action="store_true", help="coarser pictures, sooner")
    parser.add_argument("--note", default="", help="a sentence for the head of the page")
    arguments = parser.parse_args()
    folder = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""), arguments.folder)
    try:
        paths = build(folder, arguments.quick, arguments.note)
    except load.ResultError as error:
        print(f"page: {error}", file=sys.stderr)
        return 2
    print(paths[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
