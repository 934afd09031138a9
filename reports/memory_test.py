"""Nothing is lost between a result and the curve or map that is drawn from it."""

import random
import unittest

from reports import memory
from reports.records import Memory, Run, Segment, Stream

SEED = 31
MIB = 1 << 20


def series_of(generator, count):
    reserved = [generator.randint(0, 1000) for _ in range(count)]
    return {
        "event": sorted(generator.sample(range(10 * count), count)),
        "reserved_bytes": reserved,
        "allocated_bytes": [generator.randint(0, value) for value in reserved],
        "active_bytes": reserved,
    }


class Curves(unittest.TestCase):
    def test_slices_keep_every_peak(self):
        generator = random.Random(SEED)
        for count in (1, 2, 319, 320, 321, 1000, 4096):
            series = series_of(generator, count)
            events, reserved, allocated = memory.slices(series)
            message = f"seed {SEED}, {count} points"
            self.assertEqual(max(reserved), max(series["reserved_bytes"]), message)
            self.assertEqual(max(allocated), max(series["allocated_bytes"]), message)
            self.assertEqual(events, sorted(events), message)
            self.assertEqual((events[0], events[-1]), (series["event"][0], series["event"][-1]))
            self.assertLessEqual(len(events), memory.SLICE_COUNT + 1, message)

    def test_each_slice_has_the_largest_value_between_its_events(self):
        series = series_of(random.Random(SEED), 2000)
        events, reserved, _ = memory.slices(series)
        for start, end, value in zip(events, events[1:-1], reserved):
            inside = [
                held
                for event, held in zip(series["event"], series["reserved_bytes"])
                if start <= event < end
            ]
            self.assertEqual(value, max(inside), f"seed {SEED}")

    def test_steps_have_the_value_of_every_event(self):
        generator = random.Random(SEED)
        events = list(range(50))
        values = [generator.randint(0, 3) for _ in events]
        x, y = memory.steps(events, values)
        for event, value in zip(events, values):
            corner = max(index for index in range(len(x)) if x[index] <= event)
            self.assertEqual(y[corner], value, f"seed {SEED}, event {event}")


def segments_of(generator, count):
    segments = []
    for number in range(count):
        size = generator.choice([2, 20, 22, 64, 300]) * MIB
        cut = generator.randrange(0, size, 512)
        blocks = [(0, cut, "allocated"), (cut, size - cut, "inactive")]
        pool = "small" if size == 2 * MIB else "large"
        segments.append(Segment(number << 30, size, generator.randint(0, 2), pool, blocks))
    return segments


class Maps(unittest.TestCase):
    def test_every_segment_lies_once_in_a_row_of_its_stream_and_pool(self):
        generator = random.Random(SEED)
        for count in (1, 7, 150):
            segments = segments_of(generator, count)
            placed = []
            for stream, pool, row in memory.pack(segments, 300 * MIB):
                end = 0
                for start, segment in row:
                    self.assertEqual((segment.stream, segment.pool), (stream, pool))
                    self.assertEqual(start, end, f"seed {SEED}")
                    end = start + segment.size
                    placed.append(segment.address)
                self.assertLessEqual(end, 300 * MIB)
            self.assertEqual(sorted(placed), [segment.address for segment in segments])

    def test_ranges_have_as_many_bytes_as_the_blocks(self):
        segments = segments_of(random.Random(SEED), 40)
        drawn = {"allocated": 0, "inactive": 0}
        for _, _, row in memory.pack(segments, 400 * MIB):
            for state, spans in memory.block_runs(row).items():
                drawn[state] += sum(end - start for start, end in spans)
        for state, total in drawn.items():
            blocks = [block for segment in segments for block in segment.blocks]
            self.assertEqual(total, sum(size for _, size, kind in blocks if kind == state))

    def test_maps_have_one_scale_with_few_enough_rows(self):
        generator = random.Random(SEED)
        runs = [run_with(segments_of(generator, count)) for count in (1, 40, 600)]
        width = memory.row_width(runs)
        for run in runs:
            rows = memory.pack(run.memory.segments, width)
            self.assertLessEqual(len(rows), memory.MAP_ROW_COUNT_MAX, f"seed {SEED}")
            self.assertLessEqual(max(segment.size for segment in run.memory.segments), width)

    def test_streams_known_by_handles_are_counted(self):
        run = run_with([])
        run.memory.streams = [Stream(number, 0, 0, 0, 0) for number in (0, 120946278055616)]
        names = memory.stream_names([run])
        self.assertEqual(names[120946278055616].replace("\u00a0", " "), "stream 1")
        run.memory.streams = [Stream(number, 0, 0, 0, 0) for number in (0, 7)]
        self.assertEqual(memory.stream_names([run])[7].replace("\u00a0", " "), "stream 7")


def run_with(segments):
    held = Memory("", "2.15", False, False, {}, [], segments, None, None)
    return Run("t", "c", "", 1, 1, {}, None, 0, held)


if __name__ == "__main__":
    unittest.main()
