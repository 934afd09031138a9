"""The order of configurations and the sentences about them, with numbers worked out by hand."""

import unittest

from reports import ranking
from reports.records import Results, Run

GIB = 1 << 30
LIMIT = {"x_allocator:direct": "direct"}


def run(name, peak_gib, config=None, trace="t", **counters):
    counters = {
        "device_mallocs": 10,
        "device_frees": 0,
        "retries": 0,
        "out_of_memory": 0,
        "ns_per_event": 50,
        **counters,
    }
    if config is None:
        config = "" if name == "default" else f"key_of:{name}"
    return Run(trace, name, config, peak_gib * GIB, GIB, counters, 80 * GIB, 0)


def names(runs):
    return [one.config_name for one in ranking.rank(runs)]


def sentence(runs):
    return ranking.judge(runs).sentence.replace("\u00a0", " ").replace("\u202f", " ")


class Order(unittest.TestCase):
    def test_what_is_not_the_caching_allocator_is_a_limit(self):
        for config, limit in (
            ("", False), ("x_allocator:caching", False), ("backend:native", False),
            ("x_allocator:direct", True), ("x_allocator:async", True),
            ("max_split_size_mb:64,backend:cudaMallocAsync", True),
        ):
            self.assertEqual(ranking.is_limit(run("a", 1, config)), limit, config)

    def test_lowest_peak_comes_first(self):
        self.assertEqual(names([run("a", 3), run("b", 1), run("c", 2)]), ["b", "c", "a"])

    def test_out_of_memory_comes_last_and_the_one_that_got_further_before(self):
        early = run("early", 1, out_of_memory=1, out_of_memory_event=5)
        late = run("late", 1, out_of_memory=1, out_of_memory_event=50)
        self.assertEqual(names([early, late, run("big", 9)]), ["big", "late", "early"])

    def test_a_run_without_a_cache_stands_after_the_settings(self):
        direct = run("direct", 1, "x_allocator:direct")
        failed = run("failed", 1, out_of_memory=1)
        self.assertEqual(names([direct, failed, run("a", 9)]), ["a", "direct", "failed"])

    def test_equal_peaks_are_ordered_by_retries_then_calls_then_the_default(self):
        runs = [
            run("d", 1, retries=1, device_mallocs=1),
            run("c", 1, device_mallocs=20),
            run("a", 1),
            run("default", 1),
            run("b", 1, device_mallocs=9),
        ]
        self.assertEqual(names(runs), ["b", "default", "a", "c", "d"])

    def test_a_setting_that_rounds_up_does_not_win_by_its_ratio(self):
        rounded = run("rounded", 2)
        rounded.peak_allocated_bytes = 2 * GIB
        self.assertEqual(names([rounded, run("default", 1.5)]), ["default", "rounded"])


class Verdicts(unittest.TestCase):
    def test_what_is_saved_and_at_what_cost(self):
        runs = [
            run("default", 4),
            run("best", 3, device_mallocs=12, device_frees=3, ns_per_event=75),
        ]
        self.assertEqual(
            sentence(runs),
            "Run `best`: it reserves 3.00 GiB at its peak, 1.00 GiB (25.0 %) less than `default`,"
            " with 5 more device calls (10 → 15) and 75.0 ns of host time an event instead of"
            " 50.0 ns.",
        )
        self.assertEqual(ranking.judge(runs).saved_bytes, GIB)

    def test_retries_are_part_of_the_cost(self):
        self.assertIn("2 retries", sentence([run("default", 4), run("best", 3, retries=2)]))

    def test_a_limit_that_the_default_did_not_have_is_told(self):
        best = run("gc", 3)
        best.memory_fraction = 0.05
        text = sentence([run("default", 4), best])
        self.assertIn("limited to 4.00 GiB (memory fraction 0.05); under `default` it was", text)
        self.assertTrue(text.endswith("limited to 80.0 GiB."), text)

    def test_a_limit_on_a_device_of_unknown_size_is_told_in_bytes_alone(self):
        best = run("gc", 3, limit_bytes=5 * GIB)
        best.memory_fraction, best.capacity_bytes = 0.00007, None
        default = run("default", 4)
        default.capacity_bytes = None
        self.assertTrue(
            sentence([default, best]).endswith(
                " That is with the process limited to 5.00 GiB; under `default` it was not limited."
            )
        )

    def test_a_window_that_only_the_default_begins_with_its_cache_is_told(self):
        best = run("best", 3, start_assumed=1)
        self.assertIn("the difference is an estimate", sentence([run("default", 4), best]))
        both = [run("default", 4, start_assumed=1), best]
        self.assertNotIn("estimate", sentence(both))

    def test_the_default_is_kept_when_nothing_takes_less(self):
        verdict = ranking.judge([run("default", 2), run("a", 2), run("b", 3)])
        self.assertEqual(verdict.choice.config_name, "default")
        self.assertEqual(verdict.saved_bytes, 0)
        text = sentence([run("default", 2), run("a", 2), run("b", 3)])
        self.assertTrue(text.startswith("Keep `default`: it reserves 2.00 GiB at its peak"), text)
        self.assertIn("`b` takes 1.00 GiB (50.0 %) more", text)

    def test_the_default_is_kept_when_less_than_one_percent_is_saved(self):
        runs = [run("default", 2), run("a", 1.99)]
        verdict = ranking.judge(runs)
        self.assertEqual(verdict.choice.config_name, "default")
        self.assertEqual(verdict.best.config_name, "a")
        self.assertIn("`a`, saves only 10.2 MiB (0.5 %)", sentence(runs))
        self.assertEqual(ranking.judge([run("default", 2), run("a", 1.97)]).choice.config_name, "a")

    def test_a_run_without_a_cache_is_never_the_choice(self):
        runs = [run("direct", 1, "x_allocator:direct"), run("default", 2)]
        self.assertEqual(ranking.judge(runs).choice.config_name, "default")
        verdict = ranking.judge(runs[:1])
        self.assertIsNone(verdict.choice)
        self.assertIn("has no cache", verdict.sentence)

    def test_a_setting_that_finishes_where_the_default_does_not(self):
        runs = [run("default", 1, out_of_memory=1, out_of_memory_event=7651), run("a", 2)]
        text = sentence(runs)
        self.assertIn("Run `a`: it reserves 2.00 GiB at its peak and finishes", text)
        self.assertIn("`default` ran out of memory at event 7 651", text)
        self.assertIsNone(ranking.judge(runs).saved_bytes)

    def test_a_setting_that_serves_what_failed_in_the_recording_is_better_at_any_peak(self):
        runs = [run("default", 1, ooms=1), run("a", 2), run("b", 0.5, ooms=1)]
        self.assertEqual(names(runs), ["a", "b", "default"])
        text = sentence(runs)
        self.assertIn("Run `a`: it reserves 2.00 GiB at its peak and finishes", text)
        self.assertIn("where `default` ran out of memory, as in the recording.", text)

    def test_nothing_finishes(self):
        runs = [
            run("default", 1, out_of_memory=1, out_of_memory_event=3),
            run("a", 1, out_of_memory=1, out_of_memory_event=9),
        ]
        self.assertEqual(
            sentence(runs),
            "No setting finishes. `a` got furthest: it ran out of memory at event 9.",
        )

    def test_without_a_run_called_default_the_one_without_settings_is_the_baseline(self):
        runs = [run("direct", 1, "x_allocator:direct"), run("a", 2), run("plain", 3, "")]
        self.assertEqual(ranking.judge(runs).baseline.config_name, "plain")


def results(*runs):
    return Results("folder", [], [], list(runs), {}, [])


class OverAllTraces(unittest.TestCase):
    def test_the_mean_is_geometric(self):
        both = results(
            run("default", 1, trace="t"),
            run("a", 0.5, trace="t"),
            run("default", 1, trace="u"),
            run("a", 1.28, trace="u"),
        )
        row = next(row for row in ranking.compare_all(both) if row.config_name == "a")
        self.assertAlmostEqual(row.mean_change, 0.8 - 1)  # the root of 0.5 * 1.28 is 0.8
        text = ranking.answer(both).replace("\u00a0", " ").replace("\u2212", "-")
        self.assertIn("run `a`: at the peak it reserves 20.0 % less than `default`", text)
        self.assertIn("from -50.0 % to +28.0 %", text)
        self.assertIn("within 1 % of the best setting on 1 of 2", text)

    def test_a_setting_that_runs_out_of_memory_anywhere_is_not_for_all(self):
        both = results(
            run("default", 1, trace="t"),
            run("a", 0.5, trace="t"),
            run("default", 1, trace="u"),
            run("a", 0.5, trace="u", out_of_memory=1),
        )
        self.assertEqual(ranking.compare_all(both)[0].config_name, "default")
        self.assertIn("keep `default`", ranking.answer(both))

    def test_a_setting_that_was_not_run_everywhere_is_not_for_all(self):
        both = results(
            run("default", 1, trace="t"), run("a", 0.5, trace="t"), run("default", 1, trace="u")
        )
        self.assertIn("keep `default`", ranking.answer(both))


if __name__ == "__main__":
    unittest.main()
