"""The user's own snapshots and traces under allocator configurations, and the report.

    bazel run //bench:replay -- FILE...

Options are those of the C program, which checks them and prints the rankings; this program gives it
a result folder, makes the page and says which setting to run.
"""

import os
import signal

if __name__ == "__main__":
    # The other imports take a moment, and Ctrl-C within it would show a traceback of them.
    signal.signal(signal.SIGINT, lambda number, _frame: os._exit(128 + number))

import subprocess
import sys

from bench import runner, summary

NOTE_LEFT_OUT = "What cannot be read or replayed is left out."


def names(word, option):
    """Whether WORD names OPTION as the C program understands it: whole or abbreviated."""
    name = word.split("=", 1)[0]
    return len(name) > len("--") and option.startswith(name)


def split_option(argv, option):
    """The value of a long option, and the other arguments unchanged."""
    value, rest, words = None, [], iter(argv)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif not names(word, option):
            rest.append(word)
        elif "=" in word:
            value = word.split("=", 1)[1]
        else:
            value = next(words, None)
            if value is None:
                message = f"option '{option}' requires an argument\nTry 'replay --help'"
                raise runner.Stop(2, message)
    return value, rest


def job(run, argv, tools=None):
    tools = tools or runner.Tools()
    out, rest = split_option(argv, "--out")
    if any(word in ("--help", "--usage") for word in rest) or not rest:
        status = subprocess.call([tools.replay] + rest)
        raise runner.Stop(status if status >= 0 else 128 - status)
    # The rankings as JSON are for a program, which gets nothing else.
    json_wanted = split_option(rest, "--format")[0] == "json"

    def steps(folder):
        try:
            run.run([tools.replay, "--out", folder] + rest, show=True)
        except runner.Stop as stop:
            if stop.status == 2:
                stop.note = NOTE_LEFT_OUT
            raise

    quick = any(names(word, "--quick") for word in rest)
    runner.measure(run, tools, out, quick, steps, None if json_wanted else summary.replay_lines)


if __name__ == "__main__":
    sys.exit(runner.main("replay", job, sys.argv[1:]))
