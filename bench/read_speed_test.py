"""What the reading benchmark stands on, without a clock: both readers find the same, and ours keeps
its limit of memory.

Arguments: the reader's program, the program that makes snapshots.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import unittest

from bench import read_speed, runner

TOOL, MAKE = (os.path.abspath(path) for path in sys.argv[1:3])
MIB = 1 << 20
SIZE = 16 * MIB
ADDRESS = 0x7F0000000000
SEED = 3


def is_sanitized(path):
    """A sanitizer's runtime takes memory of its own, several times that of the program."""
    with open(path, "rb") as file:
        program = file.read()
    return any(name in program for name in (b"__asan_init", b"__tsan_init"))


def segment(number):
    """Of NUMBER + 1 blocks in use."""
    address, count = ADDRESS + number * 64 * MIB, number + 1
    return {
        "device": 0, "address": address, "total_size": count * MIB, "stream": 0,
        "segment_type": "large", "allocated_size": count * MIB, "active_size": count * MIB,
        "blocks": [
            {
                "address": address + i * MIB, "size": MIB, "requested_size": MIB,
                "state": "active_allocated",
            }
            for i in range(count)
        ],
    }


class Reading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.path = os.path.join(cls.temporary.name, "made.pickle")
        make = [MAKE, "--format", "pickle", "--size", str(SIZE), "--seed", str(SEED), cls.path]
        subprocess.run(make, check=True)
        cls.ours = read_speed.reading([TOOL, cls.path])
        cls.theirs = read_speed.reading(read_speed.PICKLE_READER + [cls.path])

    def test_both_readers_find_the_same(self):
        self.assertGreater(os.path.getsize(self.path), SIZE / 2)
        self.assertGreater(self.ours["events"], 10000, f"seed {SEED}")
        read_speed.check_counts(self.ours, self.theirs, self.path)

    def test_both_readers_find_the_same_segments_and_blocks(self):
        path = os.path.join(self.temporary.name, "segments.pickle")
        with open(path, "wb") as file:
            pickle.dump({"segments": [segment(i) for i in range(20)], "device_traces": [[]]}, file)
        ours = read_speed.reading([TOOL, path])
        self.assertEqual((ours["segments"], ours["blocks"]), (20, 20 * 21 / 2))
        read_speed.check_counts(ours, read_speed.reading(read_speed.PICKLE_READER + [path]), path)

    def test_a_difference_ends_the_program(self):
        for what in ("events", "segments", "blocks"):
            with self.assertRaises(runner.Stop) as stopped:
                theirs = {**self.theirs, what: self.theirs[what] + 1}
                read_speed.check_counts(self.ours, theirs, self.path)
            self.assertEqual(stopped.exception.status, 1)
            self.assertIn(what, stopped.exception.message)

    def test_memory_stays_within_its_limit(self):
        if is_sanitized(TOOL):
            self.skipTest("a sanitizer takes memory of its own")
        limit = read_speed.memory_limit(os.path.getsize(self.path))
        self.assertLessEqual(self.ours["peak_bytes"], limit)
        # The figure is one of memory that was really used: the events alone need this much.
        self.assertGreater(self.ours["peak_bytes"], 8 * self.ours["events"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
