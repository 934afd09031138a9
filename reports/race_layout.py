"""What a picture of a race shows, and where: lanes, columns, words. Drawing is race_picture's.

Time is the order of submission: each entry has a column of its own, as wide as its words. What does
not bear on the race is left out where there is much: a lane says how many entries.
"""

import dataclasses
import os
import re

from reports import style

COLUMNS_MAX = 20
EDGES_MAX = 6
NAME_WIDTH_PT = 110  # of a line of a name; longer ones are broken
COLUMN_PAD_PT = 12
BOX_PAD_PT = 10
BOLD = 1.13  # times as wide
MARK_WIDTH_PT = 40
SIZE_PT, SMALL_PT = style.FONT_SMALL_PT, style.FONT_SMALL_PT - 1.5

# Rules about when memory begins and ends: these calls are shown.
LIFE_RULES = ("use-after-free", "use-before-alloc", "unmapped", "uninitialised", "graph-memory")
BOXES = ("operation", "node", "host", "alloc", "free")
MARKS = {"record": "record", "wait": "wait", "host-wait": "wait"}


@dataclasses.dataclass
class Column:
    """An entry, or one of the two operations that has none, or a node of a graph."""

    entry: object  # race_records.Entry, or None
    lane: object
    lines: list  # its words
    site: str
    is_box: bool
    side: str = ""  # "first", "second"
    left: float = 0
    width: float = 0
    hidden: int = 0  # entries of the lane left out before it

    @property
    def middle(self):
        return self.left + self.width / 2


@dataclasses.dataclass
class Lane:
    key: object  # ("host", thread), ("stream", number)
    name: str
    note: str


@dataclasses.dataclass
class Bar:
    """A block: from its taking to its giving back."""

    name: str
    block: object
    start: object  # Column or None
    end: object
    uses: list  # (Column, words)


@dataclasses.dataclass
class Plan:
    race: object
    lanes: list
    columns: list
    edges: list  # (Column, Column, kind)
    bars: list
    width: float

    def side(self, name):
        for column in self.columns:
            if column.side == name:
                return column
        return None


def short_name(what):
    """A kernel's name without its result, its arguments and those of templates."""
    if not what.startswith("kernel "):
        return what
    name = what[len("kernel ") :]
    name = re.sub(r"^void ", "", name).replace("(anonymous namespace)::", "")
    name = name.split("(")[0]
    while "<" in name:
        shorter = re.sub(r"<[^<>]*>", "", name)
        if shorter == name:
            name = name.split("<")[0]
        else:
            name = shorter
    return name.split("::")[-1] or what


def short_site(site):
    """The place alone, its folder left out: upload (a/train.c:31), called by ... -> train.c:31"""
    match = re.search(r"\(([^()]*)\)", site)
    place = match[1] if match else site
    return os.path.basename(place.split(", called by")[0])


def broken(text, width=NAME_WIDTH_PT):
    """Up to two lines of about one length, broken behind punctuation; what is longer still is cut."""
    if style.text_width(text, SIZE_PT) <= width:
        return [text]
    pieces = re.findall(r"[^ _:.,/-]+[ _:.,/-]*|[ _:.,/-]+", text)

    def length(count):
        lines = ("".join(pieces[:count]), "".join(pieces[count:]))
        return max(style.text_width(line.strip(), SIZE_PT) for line in lines)

    best = min(range(1, len(pieces) + 1), key=length)
    lines = ["".join(pieces[:best]).strip(), "".join(pieces[best:]).strip()]
    return [style.shorten(line, SIZE_PT, width) for line in lines if line]


def lane_of(entry, race):
    if entry.kind in ("host", "host-wait") or entry.stream == 0:
        return ("host", entry.thread or 1)
    return ("stream", entry.stream)


def make_lane(key, race):
    kind, number = key
    if kind == "host":
        return Lane(key, "host", f"thread {number}")
    notes = []
    for stream in race.streams:
        if stream.number == number:
            if stream.legacy:
                notes.append("legacy")
            if race_devices(race) > 1:
                notes.append(f"device {stream.device}")
            if stream.nonblocking and any(other.legacy for other in race.streams):
                notes.append("non-blocking")
    if race.inside_graph:
        notes.insert(0, f"captured, graph {(race.first or race.second).graph}")
    return Lane(key, f"stream {number}", ", ".join(notes))


def race_devices(race):
    return len({stream.device for stream in race.streams})


# --------------------------------------------------------------------------------------------------
# Which entries.


def records_of(race):
    """The record that each wait sees: the last one of its event before it."""
    last, found = {}, {}
    for entry in race.log:
        if entry.kind == "record":
            last[entry.object] = entry
        elif entry.kind == "wait" and entry.object in last:
            found[entry.number] = last[entry.object]
    return found


def is_life(race, entry):
    if entry.kind in ("take", "use", "give"):
        return any(block.number == entry.object for block in race.blocks)
    return entry.kind in ("alloc", "free") and race.rule in LIFE_RULES


def anchors(race):
    return [side.entry for side in (race.first, race.second) if side and side.entry]


def choose(race):
    """The entries that are shown, in order."""
    middle = anchors(race) or [race.log[-1].number if race.log else 0]
    distance = {
        entry.number: min(abs(entry.number - number) for number in middle) for entry in race.log
    }
    near = sorted(race.log, key=lambda entry: (distance[entry.number], entry.number))
    records = records_of(race)
    ends = [side_lane(race, side) for side in (race.first, race.second) if side]
    chosen = set(anchors(race))
    chosen |= {entry.number for entry in race.log if is_life(race, entry)}
    edges = 0
    for entry in near:
        if entry.kind == "wait" and edges < EDGES_MAX and entry.number in records:
            chosen |= {entry.number, records[entry.number].number}
            edges += 1
        elif entry.kind == "wait" and entry.other == 0 and lane_of(entry, race) in ends:
            chosen.add(entry.number)
        elif entry.kind == "host-wait" and edges < EDGES_MAX and touches_host(race):
            chosen.add(entry.number)
            edges += 1
    for entry in near:
        if len(chosen) >= COLUMNS_MAX:
            break
        if entry.kind in ("operation", "node", "host") or (
            entry.kind == "record" and lane_of(entry, race) in ends
        ):
            chosen.add(entry.number)
    return [entry for entry in race.log if entry.number in chosen]


def touches_host(race):
    return any(side and side.stream == 0 for side in (race.first, race.second))


def side_lane(race, side):
    number = side.node_stream if race.inside_graph else side.stream
    return ("stream", number) if number else ("host", side.thread or 1)


# --------------------------------------------------------------------------------------------------
# Columns.


def side_words(side):
    lines = broken(short_name(side.what))
    if side.node_number:
        lines = lines[:2] + [f"node {side.node_number} of graph {side.graph}"]
    return lines


def column_of(entry, race, lane):
    side = ""
    for name in ("first", "second"):
        operation = getattr(race, name)
        if operation and operation.entry == entry.number:
            side = name
    if entry.kind in MARKS:
        return Column(entry, lane, [MARKS[entry.kind]], short_site(entry.site), False, side)
    if entry.kind in ("take", "use", "give"):
        return Column(entry, None, [], short_site(entry.site), False, side)
    if side:
        operation = getattr(race, side)
        return Column(entry, lane, side_words(operation), short_site(operation.place), True, side)
    return Column(entry, lane, broken(short_name(entry.what)), short_site(entry.site), True)


def block_words(column, race):
    entry = column.entry
    if entry.kind == "use":
        return f"record_stream({entry.stream})"
    return {"take": "taken", "give": "given back"}[entry.kind]


def measure(column, race):
    words = list(column.lines)
    if column.lane is None:
        words = [block_words(column, race)]
    width = max(style.text_width(line, SIZE_PT) for line in words)
    width *= BOLD if column.side else 1
    width = max(width, style.text_width(column.site, SMALL_PT))
    return max(width + (BOX_PAD_PT if column.is_box else 0), MARK_WIDTH_PT)


def synthetic(race, name, lanes):
    """A column for an operation that the log does not have any more."""
    side = getattr(race, name)
    lane = lanes[side_lane(race, side)]
    return Column(None, lane, side_words(side), short_site(side.place), True, name)


def make_columns(race, entries, lanes):
    columns = []
    for entry in entries:
        key = lane_of(entry, race)
        lane = lanes.get(key) if entry.kind not in ("take", "use", "give") else None
        columns.append(column_of(entry, race, lane))
    for name in ("first", "second"):
        side = getattr(race, name)
        if side and not any(column.side == name for column in columns):
            column = synthetic(race, name, lanes)
            columns = [column] + columns if name == "first" else columns + [column]
    return columns


def count_hidden(race, entries, columns, lanes):
    """How many entries of its lane stand between a column and the one before it."""
    shown = {entry.number for entry in entries}
    waiting = dict.fromkeys(lanes, 0)
    by_number = {column.entry.number: column for column in columns if column.entry}
    for entry in race.log:
        key = lane_of(entry, race)
        if entry.number in shown:
            column = by_number[entry.number]
            if column.lane is not None:
                column.hidden = waiting[key]
                waiting[key] = 0
        elif key in waiting and entry.kind in ("operation", "node", "host"):
            waiting[key] += 1


# --------------------------------------------------------------------------------------------------
# Edges and blocks.


def make_edges(race, columns):
    by_number = {column.entry.number: column for column in columns if column.entry}
    edges = []
    for wait, record in records_of(race).items():
        if wait in by_number and record.number in by_number:
            edges.append((by_number[record.number], by_number[wait], "wait"))
    for column in columns:
        if column.entry and column.entry.kind == "host-wait":
            source = last_covered(columns, column.entry)
            if source:
                edges.append((source, column, "wait"))
    return edges + legacy_edges(race, columns)


def last_covered(columns, wait):
    found = None
    for column in columns:
        entry = column.entry
        if entry is None or entry.number > wait.number or column.lane is None:
            continue
        if entry.stream == wait.other and entry.kind in ("operation", "record", "wait"):
            if entry.sequence <= wait.other_sequence:
                found = column
    return found


def legacy_edges(race, columns):
    """Work of the legacy stream stands between the blocking streams' earlier and later work."""
    streams = {stream.number: stream for stream in race.streams}
    work = [c for c in columns if c.entry and c.entry.kind == "operation"]
    edges = []
    for column in work:
        own = streams.get(column.entry.stream)
        if own is None or not own.legacy:
            continue
        for number, stream in streams.items():
            if stream.legacy or stream.nonblocking or stream.device != own.device:
                continue
            lane = [c for c in work if c.entry.stream == number]
            before = [c for c in lane if c.entry.number < column.entry.number]
            behind = [c for c in lane if c.entry.number > column.entry.number]
            edges += [(before[-1], column, "legacy")] if before else []
            edges += [(column, behind[0], "legacy")] if behind else []
    return edges


def make_bars(race, columns):
    bars = []
    for block in race.blocks:
        own = [c for c in columns if c.lane is None and c.entry and c.entry.object == block.number]
        ends = {c.entry.kind: c for c in own if c.entry.kind != "use"}
        uses = [(c, block_words(c, race)) for c in own if c.entry.kind == "use"]
        name = block.name or f"block {block.number}"
        bars.append(Bar(name, block, ends.get("take"), ends.get("give"), uses))
    return bars


# --------------------------------------------------------------------------------------------------
# Inside a graph.


def node_column(race, node, lane):
    side = getattr(race, node.side) if node.side in ("first", "second") else None
    lines = side_words(side) if side else broken(short_name(node.what))
    return Column(None, lane, lines, short_site(node.site), True, node.side if side else "")


def plan_nodes(race, left):
    """A lane for each stream that captured nodes, else for each chain of edges."""
    keys = [("stream", n.stream) if n.stream else ("chain", n.chain) for n in race.nodes]
    lanes = {}
    for key in sorted(set(keys)):
        note = f"captured, graph {race.first.graph}" if key[0] == "stream" else ""
        lanes[key] = Lane(key, f"{key[0]} {key[1]}", note)
    columns = {}
    for node, key in zip(race.nodes, keys):
        columns[node.node] = node_column(race, node, lanes[key])
    edges = [
        (columns[dependency], columns[node.node], "edge")
        for node in race.nodes
        for dependency in node.dependencies
        if dependency in columns
    ]
    left = place(race, columns.values(), left)
    return Plan(race, list(lanes.values()), list(columns.values()), edges, [], left)


def place(race, columns, left):
    """Sets the columns beside each other; returns where they end."""
    for column in columns:
        left += 22 if column.hidden else 0
        column.left, column.width = left, measure(column, race)
        left += column.width + COLUMN_PAD_PT
    return left


def plan(race, left):
    """LEFT: where the columns begin."""
    if race.nodes:
        return plan_nodes(race, left)
    entries = choose(race)
    keys = {lane_of(entry, race) for entry in entries if entry.kind not in ("take", "use", "give")}
    keys |= {side_lane(race, side) for side in (race.first, race.second) if side}
    ordered = sorted(keys, key=lambda key: (key[0] != "host", key[1]))
    lanes = {key: make_lane(key, race) for key in ordered}
    columns = make_columns(race, entries, lanes)
    count_hidden(race, entries, columns, lanes)
    left = place(race, columns, left)
    return Plan(
        race,
        list(lanes.values()),
        columns,
        make_edges(race, columns),
        make_bars(race, columns),
        left,
    )
