"""The page of a result folder: DIR/index.html, and its figures as files in DIR/figures/.

    bazel run //reports:page -- DIR

The page shows what the folder has; what is absent is named in its head. Figures are drawn by two
processes, since drawing takes most of the time. Files appear under their names when they are
complete; the page comes last.
"""

import os
import signal

if __name__ == "__main__":
    # The other imports take a moment, and Ctrl-C within it would show a traceback of them.
    signal.signal(signal.SIGINT, lambda number, _frame: os._exit(128 + number))

import concurrent.futures
import contextlib
import dataclasses
import functools
import glob
import multiprocessing
import re
import sys

from reports import host_cost, load, markup, memory, overview, program, style, workloads
from reports.page_context import context_section
from reports.page_head import head
from reports.page_host_cost import host_cost_section
from reports.page_replay_speed import replay_speed_section
from reports.page_trace import trace_section
from reports.page_workloads import workloads_section

FIGURE_FOLDER = "figures"
HOST_COST, WORKLOADS = " host cost", " workloads"  # sections; no trace is called so
WORKER_COUNT_MAX = 2


@dataclasses.dataclass
class Figure:
    """A picture to draw, and the words that go with it."""

    section: str  # of the page: a trace, HOST_COST, WORKLOADS, or "" for a file that is only linked
    key: str  # in its section
    name: str  # of its files, without ending
    draw: object  # title -> canvas
    title: str
    caption: str
    source: str


def file_name(text, taken):
    """TEXT as a file name that is not TAKEN yet, and now is."""
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-.")[:80] or "trace"
    name, number = stem, 1
    while name.lower() in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name.lower())
    return name


def plan_figures(results):
    """The figures of a page, in its order."""
    figures = []
    if len(results.traces) > 1:
        draw = functools.partial(overview.draw_overview, results)
        title = "Peak reserved memory relative to the default"
        figures.append(Figure("", "overview", "overview", draw, title, "", ""))
    taken = {"overview", "host_cost", "host_cost_spread", "host_cost_two_threads", "workloads"}
    for trace in results.traces:
        figures += plan_trace(trace, results.runs_of(trace), file_name(trace, taken))
    return figures + plan_workloads(results) + plan_host_cost(results)


def plan_trace(trace, runs, name):
    figures = []
    source = load.MEMORY_FILE
    if memory.curves_to_draw(runs):
        draw = functools.partial(memory.draw_curves, runs)
        title, caption = f"Memory over time: {trace}", memory.curves_caption(runs)
        figures.append(Figure(trace, "curves", f"{name}-memory", draw, title, caption, source))
    if memory.maps_to_draw(runs):
        draw = functools.partial(memory.draw_map, runs)
        title, caption = f"Memory at the end: {trace}", memory.map_caption(runs)
        figures.append(Figure(trace, "map", f"{name}-map", draw, title, caption, source))
    return figures


def plan_workloads(results):
    if not results.workloads:
        return []
    draw = functools.partial(workloads.draw, results.workloads)
    title = "Memory and step times of programs"
    text = workloads.caption(results.workloads)
    return [Figure(WORKLOADS, "bars", "workloads", draw, title, text, load.WORKLOADS_FILE)]


def plan_host_cost(results):
    bars = functools.partial(host_cost.draw_bars, results.host_costs)
    spread = functools.partial(host_cost.draw_spread, results.host_costs)
    two_threads = functools.partial(host_cost.draw_bars, results.two_threads)
    one, two = load.HOST_COST_FILE, load.TWO_THREADS_FILE
    figures = []
    if results.host_costs:
        title, caption = "Time of an allocation and its free", host_cost.BARS_CAPTION
        figures.append(Figure(HOST_COST, "bars", "host_cost", bars, title, caption, one))
        title, caption = "Spread of single pairs", host_cost.SPREAD_CAPTION
        figures.append(Figure(HOST_COST, "spread", "host_cost_spread", spread, title, caption, one))
    if results.two_threads:
        title, caption = "Time in each of two threads", host_cost.TWO_THREADS_CAPTION
        name = "host_cost_two_threads"
        figures.append(Figure(HOST_COST, "two threads", name, two_threads, title, caption, two))
    return figures


# --------------------------------------------------------------------------------------------------
# Drawing, in processes that inherit what they draw.

PLAN = {}


def draw(index):
    """Draws one figure of the plan and writes its files; returns the SVG for the page."""
    figure = PLAN["figures"][index]
    svg, png, inline = style.render(figure.draw(figure.title), figure.name, PLAN["quick"])
    stem = os.path.join(PLAN["folder"], figure.name)
    write_file(f"{stem}.svg", svg.encode("utf-8"))
    write_file(f"{stem}.png", png)
    return inline


def leave_signals_to_parent():
    """Ctrl-C reaches the whole process group; the parent ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@contextlib.contextmanager
def signals_held():
    """Ctrl-C within comes at the end: leave() then finds all or nothing of what was done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def draw_all(figures, folder, quick):
    """The inline SVG of each figure."""
    if not figures:
        return []
    with signals_held():
        PLAN.update(figures=figures, folder=folder, quick=quick)
        os.makedirs(folder, exist_ok=True)
    workers = min(WORKER_COUNT_MAX, os.cpu_count() or 1, len(figures))
    if workers < 2:
        return [draw(index) for index in range(len(figures))]
    style.Canvas(10)  # imports matplotlib once, before the processes part
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(
        workers, mp_context=context, initializer=leave_signals_to_parent
    ) as pool:
        with signals_held():  # until leave() knows the processes
            pictures = pool.map(draw, range(len(figures)))
        return list(pictures)


def write_file(path, data):
    """The file appears under its name when it is complete."""
    temporary = f"{path}.{os.getpid()}.part"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException as failure:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(failure, OSError):
            failure.filename = path  # a full disk is no property of a file, says Python
        raise


# --------------------------------------------------------------------------------------------------


def build(folder, quick=False, note=""):
    """Writes the page of FOLDER; returns the paths written, index.html first.

    quick: pictures with fewer pixels. note: a sentence for the head of the page, such as "The run
    was interrupted." Raises load.ResultError for unreadable results, OSError if the folder cannot
    be written.
    """
    results = load.load(folder)
    figures = plan_figures(results)
    figure_folder = os.path.join(folder, FIGURE_FOLDER)
    pictures = {}
    for figure, svg in zip(figures, draw_all(figures, figure_folder, quick)):
        if figure.section:
            pictures.setdefault(figure.section, {})[figure.key] = markup.figure(
                svg, figure.name, figure.title, figure.caption, figure.source
            )
    sections = [head(results, note)]
    sections += [trace_section(results, trace, pictures.get(trace, {})) for trace in results.traces]
    if results.workloads:
        sections.append(workloads_section(results, pictures[WORKLOADS]["bars"]))
    if results.host_costs or results.two_threads:
        sections.append(host_cost_section(results, pictures[HOST_COST]))
    if results.replay_speeds:
        sections.append(replay_speed_section(results))
    sections.append(context_section(results))
    path = os.path.join(folder, "index.html")
    text = markup.document(title(results), sections).encode("utf-8")
    with signals_held():
        write_file(path, text)
        PLAN["page"] = path
    return [path] + [
        os.path.join(figure_folder, figure.name + ending)
        for figure in figures
        for ending in (".svg", ".png")
    ]


def title(results):
    if len(results.traces) == 1:
        return f"{results.traces[0]}: allocator settings compared"
    settings = results.traces or results.workloads
    return "Allocator settings compared" if settings else "Host cost of allocators"


def main(arguments=None):
    parser = program.Parser(
        prog="page",
        description="Writes DIR/index.html and DIR/figures/ from the result files in DIR.",
    )
    parser.add_argument(
        "folder", metavar="DIR", help=f"a folder with {', '.join(load.FILES)} (some of them)"
    )
    parser.add_argument("--quick", action="store_true", help="pictures with fewer pixels")
    parser.add_argument(
        "--note", default="", metavar="TEXT", help="a sentence for the head of the page"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    folder = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""), options.folder)
    try:
        paths = build(folder, options.quick, options.note)
    except load.ResultError as error:
        return complain(error, 2)
    except OSError as error:
        remove_if_empty(os.path.join(folder, FIGURE_FOLDER))
        return complain(
            f"{error.filename}: {error.strerror}; expected a folder that can be written", 2
        )
    except ImportError as error:
        remove_if_empty(os.path.join(folder, FIGURE_FOLDER))
        return complain(f"{error.name} is not installed; ./setup installs it", 3)
    print(paths[0])
    return 0


def leave(number, _frame):
    """Ends the workers and the program at once: an exception would have to find its way through
    whatever library is at work, and the workers would finish their pictures first. Figures that are
    complete stay; a folder without any goes.
    """
    workers = multiprocessing.active_children()
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.join()
    if "folder" in PLAN:
        for process in [os.getpid(), *(worker.pid for worker in workers)]:
            for path in glob.glob(os.path.join(glob.escape(PLAN["folder"]), f"*.{process}.part")):
                os.unlink(path)
        remove_if_empty(PLAN["folder"])
    what = "the page was written" if "page" in PLAN else "no page was written"
    os.write(2, f"page: interrupted; {what}\n".encode("ascii"))
    os._exit(128 + number)


def remove_if_empty(folder):
    try:
        os.rmdir(folder)
    except OSError:
        pass  # it holds something, or was never made


def complain(text, status):
    print(f"page: {text}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(program.run("page", main))
