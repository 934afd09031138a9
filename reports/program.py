"""What every Python program here does alike: usage errors, lost output, its end.

A reader that has seen enough (`... | head -1`) ends a program quietly; output that cannot be
written is one line and exit status 2, as with the C programs (base/options.h).
"""

import argparse
import os
import signal
import sys

BROKEN_PIPE_STATUS = 128 + signal.SIGPIPE


class Parser(argparse.ArgumentParser):
    """Wrong usage is one line and a pointer to --help, as the C programs word it."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def error(self, message):
        sys.stderr.write(f"{self.prog}: {message}\nTry '{self.prog} --help'\n")
        sys.exit(2)

    def _print_message(self, message, file=None):
        """argparse would say nothing of a help text that is lost."""
        if message:
            (file or sys.stderr).write(message)


def describe(error):
    """(exit status, line or "") of an OSError that nobody could explain better.

    One that names no file is of a standard stream.
    """
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE_STATUS, ""
    what = error.filename or "cannot write standard output"
    return 2, f"{what}: {error.strerror}"


def drop_output():
    """Standard output is lost: what is still in its buffer is not tried again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(name, main):
    """Calls main(), which returns an exit status; returns the status to end with, output
    written.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # a path may hold what the locale has not
    status = 0
    try:
        try:
            status = main()
        except SystemExit as end:
            status = end.code or 0
        sys.stdout.flush()
    except OSError as error:
        status, line = describe(error)
        if line:
            sys.stderr.write(f"{name}: {line}\n")
        drop_output()
    return status
