"""The files of docs/examples/history.c, as those who read snapshots find them.

history_files_test.py HISTORY SELFCHECK INFO: three programs.

Shapes (keys and the types of their values) are those of PyTorch 2.15's own dump; where recordings of
PyTorch lie beside the checkout, the table here is compared with them too.
"""

import gzip
import io
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
import unittest

HISTORY, SELFCHECK, INFO = (pathlib.Path(argument).absolute() for argument in sys.argv[1:])
RECORDINGS = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "pytorch"

# What PyTorch 2.15 writes. FRAMES is what an entry has only with a stack.
SHAPES = {
    "top": {"segments": "list", "device_traces": "list", "allocator_settings": "dict",
            "external_annotations": "list", "host_segments": "list", "host_traces": "list"},
    "segment": {"device": "int", "address": "int", "total_size": "int", "allocated_size": "int", "active_size": "int",
                "requested_size": "int", "stream": "int", "segment_type": "str", "segment_pool_id": "tuple",
                "is_expandable": "bool", "frames": "list", "blocks": "list"},
    "block": {"address": "int", "size": "int", "requested_size": "int", "state": "str", "frames": "list"},
    "entry": {"action": "str", "addr": "int", "size": "int", "stream": "int", "time_us": "int", "compile_context": "str",
              "user_metadata": "str", "pool_id": "tuple", "frames": "list"},
    "oom": {"action": "str", "device_free": "int", "size": "int", "stream": "int", "time_us": "int",
            "compile_context": "str", "user_metadata": "str", "pool_id": "tuple", "frames": "list"},
    "frame": {"name": "str", "filename": "str", "line": "int"},
    "settings": {"PYTORCH_CUDA_ALLOC_CONF": "str", "max_split_size": "int", "garbage_collection_threshold": "float",
                 "expandable_segments": "bool", "pinned_num_register_threads": "int",
                 "release_lock_on_cudamalloc": "bool", "pinned_use_cuda_host_register": "bool",
                 "graph_capture_record_stream_reuse": "bool", "max_round_threshold": "int", "max_cached_size": "int",
                 "roundup_power2_divisions": "dict"},
    "divisions": {str(1 << power): "int" for power in range(16)},
}
# PyTorch's own: of its compiler, of torch.cuda.memory's annotations, of its allocator for host memory.
NOT_OURS = {"compile_context", "user_metadata", "host_segments", "host_traces"}
STATES = {"active_allocated", "active_pending_free", "inactive"}


class PlainData(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"{module}.{name} is no plain data")


def load(path):
    data = path.read_bytes()
    return PlainData(io.BytesIO(gzip.decompress(data) if path.suffix == ".gz" else data)).load()


def shape(value):
    return {key: type(item).__name__ for key, item in value.items()}


def parts(snapshot):
    """Every dictionary of the snapshot, with the name of its shape."""
    yield "top", snapshot
    yield "settings", snapshot["allocator_settings"]
    yield "divisions", snapshot["allocator_settings"]["roundup_power2_divisions"]
    entries = [entry for trace in snapshot["device_traces"] for entry in trace]
    for entry in entries:
        yield "oom" if entry["action"] == "oom" else "entry", entry
    for segment in snapshot["segments"]:
        yield "segment", segment
        for block in segment["blocks"]:
            yield "block", block
    for holder in entries + snapshot["segments"] + [b for s in snapshot["segments"] for b in s["blocks"]]:
        for frame in holder.get("frames", ()):
            yield "frame", frame


class Files(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = pathlib.Path(cls.folder.name)
        cls.before_us = time.time_ns() // 1000
        subprocess.run([HISTORY, cls.path], stdout=subprocess.DEVNULL, check=True)
        cls.after_us = time.time_ns() // 1000
        cls.snapshot = load(cls.path / "history.pickle")

    def test_the_protocol_is_four(self):
        self.assertEqual((self.path / "history.pickle").read_bytes()[:2], b"\x80\x04")

    def test_every_dictionary_has_the_shape_of_pytorchs(self):
        seen = set()
        for name, value in parts(self.snapshot):
            expected = {key: kind for key, kind in SHAPES[name].items() if key not in NOT_OURS}
            if name in ("entry", "oom") and "frames" not in value:
                expected.pop("frames")
            self.assertEqual(shape(value), expected, name)
            seen.add(name)
        self.assertEqual(seen, set(SHAPES))

    def test_the_shapes_are_those_of_recordings(self):
        if not RECORDINGS.is_dir():
            self.skipTest(f"no recordings of PyTorch in {RECORDINGS}")
        seen = set()
        for file in ("gpt2_fp32__frames.pickle.gz", "oom_varlen__small_expandable.pickle", "mlp__split128.pickle"):
            for name, value in parts(load(RECORDINGS / file)):
                expected = dict(SHAPES[name])
                if name in ("entry", "oom") and "frames" not in value:
                    expected.pop("frames")
                self.assertEqual(shape(value), expected, f"{file}: {name}")
                seen.add(name)
        self.assertEqual(seen, set(SHAPES))

    def test_segments_add_up(self):
        end = 0
        for segment in self.snapshot["segments"]:
            self.assertGreaterEqual(segment["address"], end)
            address = segment["address"]
            for block in segment["blocks"]:
                self.assertIn(block["state"], STATES)
                self.assertEqual(block["address"], address)
                address += block["size"]
            end = address
            active = [block for block in segment["blocks"] if block["state"] != "inactive"]
            allocated = [block for block in active if block["state"] == "active_allocated"]
            self.assertEqual(segment["total_size"], address - segment["address"])
            self.assertEqual(segment["active_size"], sum(block["size"] for block in active))
            self.assertEqual(segment["allocated_size"], sum(block["size"] for block in allocated))
            self.assertEqual(segment["requested_size"], sum(block["requested_size"] for block in active))

    def test_times_rise_and_are_those_of_the_run(self):
        times = [entry["time_us"] for entry in self.snapshot["device_traces"][0]]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(times[0], self.before_us - 1)
        self.assertLessEqual(times[-1], self.after_us + 1)

    # The state view starts from the end and takes each entry back: a completed free adds its block,
    # an allocation removes it. The history is complete, so nothing is left at its start.
    def test_going_back_from_the_end_comes_to_nothing(self):
        blocks = {block["address"]: block["requested_size"] for segment in self.snapshot["segments"]
                  for block in segment["blocks"] if block["state"] != "inactive"}
        segments = {segment["address"]: segment["total_size"] for segment in self.snapshot["segments"]}
        for entry in reversed(self.snapshot["device_traces"][0]):
            if entry["action"] == "free_completed":
                self.assertNotIn(entry["addr"], blocks)
                blocks[entry["addr"]] = entry["size"]
            elif entry["action"] == "alloc":
                self.assertEqual(blocks.pop(entry["addr"]), entry["size"])
            elif entry["action"] == "segment_free":
                self.assertNotIn(entry["addr"], segments)
                segments[entry["addr"]] = entry["size"]
            elif entry["action"] == "segment_alloc":
                self.assertEqual(segments.pop(entry["addr"]), entry["size"])
        self.assertEqual((blocks, segments), ({}, {}))

    def test_a_free_that_did_not_wait_is_shown_as_one(self):
        entries = self.snapshot["device_traces"][0]
        for before, entry in zip(entries, entries[1:]):
            if entry["action"] == "free_completed":
                self.assertEqual((before["action"], before["addr"]), ("free_requested", entry["addr"]))

    def test_the_innermost_frame_is_the_programs(self):
        for entry in self.snapshot["device_traces"][0]:
            innermost = entry["frames"][0]
            self.assertIn(innermost["name"], ("take", "give"))
            self.assertEqual(innermost["filename"], "docs/examples/history.c")
            self.assertGreater(innermost["line"], 0)

    def test_equal_stacks_are_one_object(self):
        loads = [entry["frames"] for entry in self.snapshot["device_traces"][0]
                 if entry["action"] == "alloc" and entry["frames"][1]["name"] == "load_weights"]
        self.assertEqual(len(loads), 3)
        self.assertIs(loads[0], loads[2])

    def test_both_files_replay_to_the_same_decisions(self):
        for arguments in (["history.tmt"], ["--capacity", "100MiB", "history.pickle"]):
            result = subprocess.run([SELFCHECK, *arguments], capture_output=True, text=True, cwd=self.path, check=False)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("100.0 %  blocks 6/6 segments 2/2 releases 1/1 layout 4/4", result.stdout)

    def test_our_own_reader_finds_what_python_finds(self):
        actions = {}
        for entry in self.snapshot["device_traces"][0]:
            actions[entry["action"]] = actions.get(entry["action"], 0) + 1
        for file in ("history.pickle", "history.tmt"):
            result = subprocess.run([INFO, file], capture_output=True, text=True, cwd=self.path, check=True)
            for action, count in actions.items():
                self.assertIn(f"{count} {action}", result.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
