"""Reports of the race checker as records, from their file of JSON lines; docs/races.md is the
schema.

A line is either understood in full or refused in one line that says which line, what is wrong and
what would be right.
"""

import dataclasses
import json

from reports.reader import Reader, ResultError, reason_of

SCHEMA = "tidemark-races-1"
KINDS = ("operation", "node", "record", "wait", "host-wait", "host", "alloc", "free", "take",
         "use", "give")
MODES = ("read", "write", "atomic")


@dataclasses.dataclass
class Side:
    """One of the two operations."""

    what: str
    mode: str
    site: str
    label: str
    stream: int  # 0: the host
    thread: int
    sequence: int
    entry: int  # of the log; 0: it has none
    block: int
    node: str
    node_site: str
    node_number: int  # 0: no node of a graph
    node_stream: int
    graph: int

    @property
    def place(self):
        """Where it was called: of a node, where that was captured or added."""
        return self.node_site if self.node_number else self.site


@dataclasses.dataclass
class Doing:
    """What an origin says: a call, and where it came from."""

    what: str
    site: str
    label: str
    thread: int
    entry: int
    stream: int


@dataclasses.dataclass
class Block:
    number: int
    name: str
    start: int
    size: int
    stream: int
    taken: Doing
    given: Doing  # None: it is held
    uses: list


@dataclasses.dataclass
class Entry:
    """Something that happened."""

    number: int
    kind: str
    stream: int  # 0: the host
    sequence: int
    other: int
    other_sequence: int
    object: int
    start: int
    size: int
    what: str
    site: str
    label: str
    thread: int


@dataclasses.dataclass
class Stream:
    number: int
    device: int
    legacy: bool
    nonblocking: bool


@dataclasses.dataclass
class Node:
    """Of a graph's launch."""

    node: int  # its place in the launch
    number: int
    stream: int  # that captured it; 0: none
    chain: int
    what: str
    site: str
    side: str  # "first", "second" or ""
    dependencies: list


@dataclasses.dataclass
class Race:
    number: int
    rule: str
    kind: str
    first: Side  # None: there is none
    second: Side
    start: int
    size: int
    allocation: Doing  # None: not known
    allocation_start: int
    allocation_size: int
    freed: Doing
    blocks: list
    inside_graph: bool
    missing: str
    mend: str
    text: str
    streams: list
    gap: bool
    log: list
    nodes: list


def optional_text(item, key):
    return item.get(key).text() if item.has(key) else ""


def optional_number(item, key):
    return item.get(key).number() if item.has(key) else 0


def read_side(item, key):
    side = item.get(key, "an operation or null")
    if side.value is None:
        return None
    mode = side.get("mode", "read, write or atomic")
    if mode.text() not in MODES:
        mode.fail(f'is "{mode.value}"', "read, write or atomic")
    return Side(
        what=side.get("what").text(),
        mode=mode.value,
        site=optional_text(side, "site"),
        label=optional_text(side, "label"),
        stream=side.get("stream").number(),
        thread=side.get("thread").number(),
        sequence=side.get("sequence").number(),
        entry=optional_number(side, "entry"),
        block=optional_number(side, "block"),
        node=optional_text(side, "node"),
        node_site=optional_text(side, "node_site"),
        node_number=optional_number(side, "node_number"),
        node_stream=optional_number(side, "node_stream"),
        graph=optional_number(side, "graph"),
    )


def read_doing(item, key):
    if not item.has(key):
        return None
    doing = item.get(key)
    return Doing(
        what=optional_text(doing, "what"),
        site=optional_text(doing, "site"),
        label=optional_text(doing, "label"),
        thread=optional_number(doing, "thread"),
        entry=optional_number(doing, "entry"),
        stream=optional_number(doing, "stream"),
    )


def read_block(item):
    uses = [
        read_doing(Reader(use.path, {"use": use.value}, use.where), "use")
        for use in item.get("uses").items()
    ]
    return Block(
        number=item.get("number").number(),
        name=optional_text(item, "name"),
        start=item.get("start").number(),
        size=item.get("size").number(),
        stream=item.get("stream").number(),
        taken=read_doing(item, "taken"),
        given=read_doing(item, "given"),
        uses=uses,
    )


def read_entry(item):
    kind = item.get("kind", "a kind of entry")
    if kind.text() not in KINDS:
        kind.fail(f'is "{kind.value}"', ", ".join(KINDS))
    return Entry(
        number=item.get("entry").number(),
        kind=kind.value,
        stream=item.get("stream").number(),
        sequence=optional_number(item, "sequence"),
        other=optional_number(item, "other"),
        other_sequence=optional_number(item, "other_sequence"),
        object=optional_number(item, "object"),
        start=optional_number(item, "start"),
        size=optional_number(item, "size"),
        what=optional_text(item, "what"),
        site=optional_text(item, "site"),
        label=optional_text(item, "label"),
        thread=optional_number(item, "thread"),
    )


def read_stream(item):
    return Stream(
        number=item.get("number").number(),
        device=item.get("device").number(),
        legacy=item.get("legacy").truth(),
        nonblocking=item.get("nonblocking").truth(),
    )


def read_node(item):
    return Node(
        node=item.get("node").number(),
        number=item.get("number").number(),
        stream=item.get("stream").number(),
        chain=item.get("chain").number(),
        what=item.get("what").text(),
        site=optional_text(item, "site"),
        side=optional_text(item, "side"),
        dependencies=item.get("dependencies").numbers(),
    )


def read_race(item):
    allocation = item.get("allocation") if item.has("allocation") else None
    race = Race(
        number=item.get("number").number(),
        rule=item.get("rule").text(),
        kind=item.get("kind").text(),
        first=read_side(item, "first"),
        second=read_side(item, "second"),
        start=item.get("start").number(),
        size=item.get("size").number(),
        allocation=read_doing(item, "allocation"),
        allocation_start=allocation.get("start").number() if allocation else 0,
        allocation_size=allocation.get("size").number() if allocation else 0,
        freed=read_doing(item, "freed"),
        blocks=[read_block(block) for block in item.get("blocks").items()],
        inside_graph=item.get("inside_graph").truth(),
        missing=item.get("missing").text(),
        mend=item.get("mend").text(),
        text=item.get("text").text(),
        streams=[read_stream(stream) for stream in item.get("streams").items()],
        gap=item.get("gap").truth(),
        log=[read_entry(entry) for entry in item.get("log").items()],
        nodes=[read_node(node) for node in item.get("nodes").items()],
    )
    if race.first is None and race.second is None:
        item.fail("names no operation", 'a "first", a "second" or both')
    numbers = [entry.number for entry in race.log]
    if numbers != sorted(set(numbers)):
        item.get("log").fail("is not in order", "entries by rising number")
    return race


def read_line(path, number, line):
    try:
        return Reader(path, json.loads(line), f"line {number}")
    except (ValueError, RecursionError) as error:
        what = reason_of(error)
        raise ResultError(f"{path}:{number}: {what}; expected a JSON object") from None


def load(path):
    """The reports of a file, in its order."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ResultError(
            f"{path}: byte {error.start} is not UTF-8; expected reports of the race checker"
        ) from None
    except OSError as error:
        raise ResultError(
            f"{path}: {error.strerror}; expected a file of reports of the race checker"
        ) from None
    if lines == [""]:
        raise ResultError(f'{path}: the file is empty; expected a line {{"schema":"{SCHEMA}"}}')
    head = read_line(path, 1, lines[0])
    schema = head.get("schema", f'"{SCHEMA}"').text()
    if schema != SCHEMA:
        head.fail(f'"schema" is "{schema}"', f'"{SCHEMA}", the version that this program reads')
    return [read_race(read_line(path, i, line)) for i, line in enumerate(lines[1:], 2)]
