"""Made reports of the race checker, for tests."""

import json

HEAD = {"schema": "tidemark-races-1"}
START = 0x7F0000200000


def entry(number, kind, stream, **more):
    return {"entry": number, "kind": kind, "stream": stream} | more


def operation(number, stream, sequence, what, line):
    return entry(
        number, "operation", stream, sequence=sequence, what=what, site=f"train.c:{line}", thread=1
    )


def side(of, mode, **more):
    return {
        "what": of["what"],
        "mode": mode,
        "site": of.get("site", ""),
        "stream": of["stream"],
        "device": 0,
        "thread": 1,
        "sequence": of.get("sequence", 0),
        "entry": of["entry"],
    } | more


def streams(*numbers, legacy=0):
    return [
        {"number": number, "device": 0, "legacy": number == legacy, "nonblocking": number != legacy}
        for number in numbers
    ]


def race(number, rule, first, second, log, stream_list, **more):
    return {
        "number": number,
        "rule": rule,
        "kind": rule,
        "first": first,
        "second": second,
        "start": START,
        "size": 4096,
        "allocation": {
            "start": START,
            "size": 1 << 20,
            "what": "cudaMalloc",
            "site": "train.c:20",
            "thread": 1,
        },
        "blocks": [],
        "inside_graph": False,
        "missing": "stream 7 never waited for stream 5 behind the copy",
        "mend": "record an event in stream 5 after the copy and make stream 7 wait for it",
        "text": f"{rule}: ...\n  missing  ...\n",
        "streams": stream_list,
        "gap": False,
        "log": log,
        "nodes": [],
    } | more


def early_record(number=1):
    """An event recorded before the work."""
    log = [
        operation(1, 5, 1, "kernel embedding", 28),
        entry(2, "record", 5, sequence=2, other=5, other_sequence=2, object=9, site="train.c:30"),
        operation(3, 5, 3, "copy of 4096 bytes to the device", 31),
        entry(4, "wait", 7, sequence=1, other=5, other_sequence=2, object=9, site="train.c:33"),
        operation(5, 7, 2, "kernel scale", 35),
    ]
    return race(
        number, "read-write", side(log[2], "write"), side(log[4], "read"), log, streams(5, 7)
    )


def reuse(number=1):
    """A block that is handed out too early."""
    block = {"object": 1, "start": START, "size": 4096}
    log = [
        entry(1, "take", 3, site="train.c:22", **block),
        operation(2, 3, 1, "kernel forward", 24),
        operation(3, 7, 1, "kernel all_gather", 31),
        entry(4, "use", 8, site="train.c:38", **block),
        entry(5, "give", 0, site="train.c:40", **block),
        entry(6, "take", 3, site="train.c:50", **(block | {"object": 2})),
        operation(7, 3, 2, "kernel backward", 55),
    ]
    doing = {"what": "block taken", "thread": 1}
    blocks = [
        {
            "number": 1,
            "name": "activations",
            "start": START,
            "size": 4096,
            "stream": 3,
            "taken": doing | {"entry": 1, "site": "train.c:22"},
            "uses": [doing | {"entry": 4, "stream": 8, "site": "train.c:38"}],
            "given": doing | {"entry": 5, "site": "train.c:40"},
        },
        {
            "number": 2,
            "start": START,
            "size": 4096,
            "stream": 3,
            "taken": doing | {"entry": 6, "site": "train.c:50"},
            "uses": [],
        },
    ]
    return race(
        number,
        "reuse",
        side(log[2], "read", block=1),
        side(log[6], "write", block=2),
        log,
        streams(3, 7, 8),
        blocks=blocks,
    )


LONG_KERNEL = (
    "kernel void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
    "namespace)::FusedOptimizerTensorListMetadata<4>, float>(int, float)"
)


def crowded(number=1, lanes=8, rounds=30):
    """Many streams, many operations, long names."""
    log, count, sequences = [], 0, dict.fromkeys(range(2, 2 + lanes), 0)

    def add(kind, stream, **more):
        nonlocal count
        count += 1
        sequences[stream] += 1
        log.append(entry(count, kind, stream, sequence=sequences[stream], **more))
        return log[-1]

    for turn in range(rounds):
        for stream in sequences:
            add("operation", stream, what=LONG_KERNEL, site="a/long/path/of/optimizer.cpp:1234")
        source, target = 2 + turn % lanes, 2 + (turn + 1) % lanes
        record = add("record", source, object=turn + 1, site="engine.cpp:9")
        add(
            "wait",
            target,
            object=turn + 1,
            other=source,
            other_sequence=record["sequence"],
            site="engine.cpp:10",
        )
    first = log[rounds * (lanes + 2) // 2 - lanes]
    second = add("operation", 2 + lanes - 1, what="kernel reduce", site="reduce.cpp:7")
    return race(
        number,
        "write-write",
        side(first, "write"),
        side(second, "write"),
        log,
        streams(*sequences),
        gap=True,
    )


def uninitialised(number=1):
    """One operation only, of a host thread, which the log does not have."""
    log = [entry(1, "alloc", 0, start=START, size=1 << 20, what="cudaMalloc", site="train.c:20")]
    only = {"entry": 0, "what": "host read of 16 bytes", "stream": 0}
    return race(number, "uninitialised", None, side(only, "read"), log, [])


def legacy(number=1):
    """Work of the legacy stream between that of a blocking stream; a non-blocking one besides."""
    log = [
        operation(1, 2, 1, "kernel before", 10),
        operation(2, 1, 1, "copy of 8 bytes to the device", 11),
        operation(3, 2, 2, "kernel behind", 12),
        operation(4, 7, 1, "kernel beside", 13),
    ]
    known = streams(1, 2, 7, legacy=1)
    known[1]["nonblocking"] = False
    return race(number, "write-write", side(log[1], "write"), side(log[3], "write"), log, known)


def inside(number=1, captured=True):
    """Two nodes of a graph without a path between them."""

    def node(place, what, stream, chain, dependencies):
        return {
            "node": place,
            "number": place + 1,
            "stream": stream if captured else 0,
            "chain": chain,
            "what": what,
            "site": f"train.c:{30 + place}",
            "side": {1: "first", 2: "second"}.get(place, ""),
            "dependencies": dependencies,
        }

    nodes = [
        node(0, "kernel start", 3, 1, []),
        node(1, "kernel fork", 5, 2, [0]),
        node(2, "kernel main", 3, 1, [0]),
        node(3, "kernel end", 3, 1, [2, 1]),
    ]
    sides = [
        {
            "what": nodes[i]["what"],
            "mode": "write",
            "site": "train.c:60",
            "stream": 2,
            "device": 0,
            "thread": 1,
            "sequence": 9,
            "node_site": nodes[i]["site"],
            "node_number": nodes[i]["number"],
            "node_stream": nodes[i]["stream"],
            "graph": 6,
        }
        for i in (1, 2)
    ]
    return race(
        number, "write-write", *sides, [], streams(3, 5), inside_graph=True, nodes=nodes
    )


def write(path, races):
    with open(path, "w", encoding="utf-8") as file:
        for line in [HEAD, *races]:
            file.write(json.dumps(line) + "\n")
    return path
