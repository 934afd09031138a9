"""A JSON file read with care: every value comes with the way to it, so that a complaint is one line
that says which file, where in it, what is wrong and what would be right.
"""

import json
import os
import sys

NUMBER_MAX = sys.float_info.max  # an integer may have any number of digits


class ResultError(Exception):
    """One line: file, what is wrong, what would be right."""


class Reader:
    """A JSON value and the way to it, so that every complaint can say where it is."""

    def __init__(self, path, value, where=""):
        self.path, self.value, self.where = path, value, where

    def fail(self, problem, right):
        place = f"{self.where}: " if self.where else ""
        raise ResultError(f"{self.path}: {place}{problem}; expected {right}")

    def has(self, key):
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def get(self, key, right="this key"):
        if not isinstance(self.value, dict):
            self.fail(f"is {kind_of(self.value)}", "an object")
        if key not in self.value:
            self.fail(f'"{key}" is missing', right)
        return Reader(self.path, self.value[key], f"{self.where}.{key}" if self.where else key)

    def items(self):
        if not isinstance(self.value, list):
            self.fail(f"is {kind_of(self.value)}", "a list")
        return [
            Reader(self.path, value, f"{self.where}[{i}]") for i, value in enumerate(self.value)
        ]

    def text(self):
        if not isinstance(self.value, str):
            self.fail(f"is {kind_of(self.value)}", "a text")
        try:
            self.value.encode()
        except UnicodeEncodeError as error:
            self.fail(f"has {ascii(self.value[error.start])} at {error.start}", "characters")
        return self.value

    def truth(self):
        if not isinstance(self.value, bool):
            self.fail(f"is {kind_of(self.value)}", "true or false")
        return self.value

    def number(self):
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            self.fail(f"is {kind_of(self.value)}", "a number")
        if not abs(self.value) <= NUMBER_MAX:
            what = f"is {self.value}" if isinstance(self.value, float) else "has too many digits"
            self.fail(what, "a finite number")
        if self.value < 0:
            self.fail(f"is {self.value}", "a number that is not negative")
        return self.value

    def numbers(self):
        """A list of numbers; checked in one go, since a curve has thousands."""
        if not isinstance(self.value, list):
            self.fail(f"is {kind_of(self.value)}", "a list of numbers")
        for i, value in enumerate(self.value):
            if type(value) not in (int, float) or not 0 <= value <= NUMBER_MAX:
                Reader(self.path, value, f"{self.where}[{i}]").number()
        return self.value


def kind_of(value):
    if value is None:
        return "null"
    return {
        dict: "an object",
        list: "a list",
        str: f'the text "{value}"',
        bool: str(value).lower(),
    }.get(type(value), f"{value}")


def reason_of(error):
    """Why a text is no JSON."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return getattr(error, "msg", "a number has too many digits")


def read_json(folder, name):
    """None if the file is absent."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) else f"byte {error.start} is not UTF-8"
        )
        raise ResultError(f"{path}: {reason}; expected a readable JSON file") from None
    if not text.strip():
        raise ResultError(f"{path}: the file is empty; expected a JSON object")
    try:
        return Reader(path, json.loads(text))
    except (ValueError, RecursionError) as error:
        what = reason_of(error)
        line = f" at line {error.lineno}, column {error.colno}" if hasattr(error, "lineno") else ""
        raise ResultError(f"{path}: {what}{line}; expected a complete JSON object") from None
