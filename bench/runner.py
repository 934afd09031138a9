"""What //bench:all and //bench:replay share: result folder, child programs, interrupts, the page.

Results are kept: a folder that holds something is never written into, the next free name is used
instead. A step that fails or is interrupted leaves the files of the steps before it, and a file
appears only when it is complete, so that what stands in the folder can always be read and shown.
Everything measured is measured by the C programs.
"""

import glob
import os
import signal
import subprocess
import sys
import time

from reports import program

RESULT_FOLDER = "tidemark-results"
MARKER = ".running"  # in the folder of a run, see Folder
NOTE_INTERRUPTED = "The run was interrupted: what is absent was not measured."
NOTE_FAILED = "The run ended early with a failure: what is absent was not measured."


class Stop(Exception):
    """Ends the program: the exit status, one line for the user if nobody has told yet, and a note
    for the page.
    """

    def __init__(self, status, message="", note=NOTE_FAILED):
        super().__init__(message)
        self.status = status
        self.message = message
        self.note = note


class Tools:
    """The programs and traces, where Bazel put them: the runfiles beside this module."""

    def __init__(self, root=None):
        self.root = root = root or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.host_cost = os.path.join(root, "bench/host_cost")
        self.allocator = os.path.join(root, "bench/allocator_tool")
        self.replay = os.path.join(root, "bench/replay_tool")
        self.replay_speed = os.path.join(root, "bench/replay_speed_tool")
        self.workloads = os.path.join(root, "bench/workloads")
        # Absent with --config=cuda.
        self.simulator = os.path.join(root, "bench/simulator")
        self.capture = os.path.join(root, "bench/capture")
        self.tensor = os.path.join(root, "bench/tensor")
        self.make = os.path.join(root, "trace/make")
        self.page = os.path.join(root, "reports/page")
        self.traces = sorted(glob.glob(os.path.join(root, "trace/**/*.tmt"), recursive=True))

    def recorded(self):
        """Recorded programs, each once: in PyTorch's default configuration."""
        return [path for path in self.traces if path.endswith("__default.tmt")]


def user_path(path):
    """A path as the user meant it: relative to where they stood, not where Bazel runs us."""
    folder = os.environ.get("BUILD_WORKING_DIRECTORY", "")
    try:
        if folder:
            os.stat(folder)
        return os.path.abspath(os.path.join(folder, path))
    except OSError as error:
        where = f"{folder} (BUILD_WORKING_DIRECTORY)" if folder else "the folder that you are in"
        raise Stop(3, f"cannot enter {where}: {error.strerror}") from None


def check_out(asked):
    """Refuses a value of --out as the C programs do."""
    if asked == "":
        raise Stop(2, "--out: the value is empty")


class Folder:
    """A result folder, taken for this run: ASKED if new or empty, else ASKED-2 ...

    The marker says so to others, with the number of this process: whoever makes it first has the
    folder. The C programs that this one runs know it by the number (bench/result_folder.c).
    """

    def __init__(self, asked):
        check_out(asked)
        now = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
        base = user_path(asked or os.path.join(RESULT_FOLDER, now))
        self.path, number = base, 1
        while not self._take():
            number += 1
            self.path = f"{base}-{number}"
        if number > 1:
            what = "holds results already or is in use"
            sys.stderr.write(f"{base} {what}; writing to {self.path}\n")

    def _take(self):
        """False: it is another's."""
        self._make()
        try:
            if os.listdir(self.path):
                return False
            marker = open(os.path.join(self.path, MARKER), "x", encoding="ascii")
            try:
                with marker:
                    marker.write(f"{os.getpid()}\n")
            except OSError:
                self.release()
                raise
        except FileExistsError:
            return False
        except FileNotFoundError:  # its user has just taken it away
            return self._take()
        except PermissionError:
            advice = "choose another folder with --out"
            raise Stop(2, f"{self.path}: no right to write here; {advice}") from None
        except OSError as error:
            raise Stop(2, f"{self.path}: cannot be used: {error.strerror}") from None
        # Another run may have come to its end between the look and the claim.
        if self.files():
            self.release()
            return False
        return True

    def _make(self):
        try:
            os.makedirs(self.path, exist_ok=True)
        except FileExistsError:
            raise Stop(2, f"{self.path}: is a file; --out takes a folder") from None
        except RecursionError:
            raise Stop(2, f"{self.path[:80]}...: too many folders in one another") from None
        except OSError as error:
            advice = "choose another folder with --out"
            shown = self.path if len(self.path) < 1000 else f"{self.path[:80]}..."
            message = f"{shown}: cannot make this folder: {error.strerror}; {advice}"
            raise Stop(2, message) from None

    def files(self):
        return sorted(set(os.listdir(self.path)) - {MARKER})

    def release(self):
        """Ends the use; a folder that got no file is taken away."""
        try:
            os.unlink(os.path.join(self.path, MARKER))
            os.rmdir(self.path)
        except OSError:
            pass  # it holds results, or the user has taken it away


class Runner:
    """Runs one program after the other; passes Ctrl-C and SIGTERM on, once, to stop it cleanly."""

    def __init__(self, name):
        self.name = name
        self.child = None
        self.caught = None
        self.told = False  # the child was
        self.status = None  # of the last program
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number, _frame):
        self.caught = number
        if self.child is not None and self.child.poll() is None:
            self.told = True
            self.child.send_signal(number)

    def _tell_child(self):
        """What came between the check and the start, once."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        if self.caught is not None and not self.told:
            self.child.send_signal(self.caught)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def check_interrupt(self):
        if self.caught is not None:
            raise Stop(128 + self.caught, "interrupted", NOTE_INTERRUPTED)

    def run(self, arguments, show=False, hold_errors=False):
        """Runs a program to its end; returns its output, or passes it through with SHOW.

        Raises Stop if it fails. HOLD_ERRORS: shows its stderr at the end, unless it was
        interrupted: a Python program then says no more than where it was.
        """
        self.check_interrupt()
        self.told = False
        sys.stdout.flush()
        # A process group of its own: the terminal's Ctrl-C reaches this process only, and the
        # program gets it once.
        try:
            self.child = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=None if show else subprocess.PIPE,
                stderr=subprocess.PIPE if hold_errors else None,
                text=True,
                process_group=0,
            )
        except OSError as error:
            raise Stop(3, f"{arguments[0]}: cannot be started: {error.strerror}") from None
        self._tell_child()
        output, errors = self.child.communicate()
        self.status = status = self.child.returncode
        tool = os.path.basename(arguments[0])
        self.child = None
        self.check_interrupt()
        sys.stderr.write(errors or "")
        if status == -signal.SIGPIPE:
            raise Stop(program.BROKEN_PIPE_STATUS)
        if status < 0:
            raise Stop(1, f"{tool} was ended by {signal.Signals(-status).name}")
        if status != 0:
            raise Stop(status)  # the program has said what is wrong, on the same stderr
        return output or ""


def step(number, count, text):
    print(f"[{number}/{count}] {text}", flush=True)


def main(name, job, argv):
    """Calls job(runner, argv) and turns its end into an exit status."""

    def run():
        try:
            job(Runner(name), argv)
            return 0
        except Stop as stop:
            if stop.message:
                sys.stderr.write(f"{name}: {stop.message}\n")
            return stop.status

    return program.run(name, run)


def say(text):
    """A line that is no result, at once."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def measure(run, tools, asked, quick, steps, summarize=None):
    """Calls steps(folder), which measure into the result folder, makes its page and prints
    summarize(folder), a list of lines, and the paths; without SUMMARIZE, only these, on stderr.

    If the steps end early, by Ctrl-C or by a failure, the page is made of what is complete and says
    so; the Stop that ended them is raised at the end. A folder that got no file is taken away.
    """
    folder = Folder(asked)
    try:
        measure_into(folder, run, tools, quick, steps, summarize)
    finally:
        folder.release()


def take_steps(steps, run, folder):
    """The Stop that ended them early, or None."""
    try:
        steps(folder.path)
        run.check_interrupt()
    except Stop as stop:
        return stop
    except OSError as error:  # a line of progress that could not be written
        program.drop_output()
        return Stop(*program.describe(error))
    return None


def measure_into(folder, run, tools, quick, steps, summarize):
    stop = take_steps(steps, run, folder)
    files = folder.files()
    if not files:
        raise stop or Stop(1, "nothing was measured")
    if run.caught is not None:
        say(f"{run.name}: {stop.message}; making the page of what is complete")
        stop.message, run.caught = "", None
    try:
        write_page(run, tools, folder.path, quick, stop)
        lines = summarize(folder.path) + [""] if summarize else []
    except Stop as failure:
        say(f"kept in {folder.path}: {', '.join(files)}")
        raise stop or failure from None
    try:
        for line in lines:
            print(line)
        print_paths(folder.path, sys.stdout if summarize else sys.stderr)
        sys.stdout.flush()
    except OSError:
        if stop is None:
            raise
        program.drop_output()  # a program that has run has said so already
    if stop is not None:
        raise stop


def write_page(run, tools, folder, quick, stop):
    arguments = [tools.page, folder] + (["--quick"] if quick else [])
    run.run(arguments + (["--note", stop.note] if stop else []), hold_errors=True)


def print_paths(folder, stream):
    """The page first, then the folder."""
    pages = sorted(glob.glob(os.path.join(folder, "*.html")))
    for page in pages:
        stream.write(f"Page:    {page}\n")
    stream.write(f"Results: {folder}\n")
