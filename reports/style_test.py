"""Number formats, and what becomes of an SVG."""

import unittest
import xml.etree.ElementTree

from reports import style


def plain(text):
    """With ordinary spaces and minus signs, to be read in an assertion."""
    return text.replace("\u00a0", " ").replace("\u202f", " ").replace("\u2212", "-")


class Formats(unittest.TestCase):
    def test_bytes_have_three_digits_and_the_largest_unit(self):
        for value, text in (
            (0, "0 B"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1536, "1.50 KiB"),
            (20971520, "20.0 MiB"),
            (250 * 2**20, "250 MiB"),
            (1023 * 2**20, "1023 MiB"),
            (2**30 - 1, "1.00 GiB"),
            (6335496192, "5.90 GiB"),
            (68.1 * 2**30, "68.1 GiB"),
            (5 * 2**40, "5.00 TiB"),
            (-48 * 2**20, "-48.0 MiB"),
        ):
            self.assertEqual(plain(style.format_bytes(value)), text, value)

    def test_a_chosen_size_has_no_zeros_to_show(self):
        self.assertEqual(plain(style.format_bytes(20 * 2**20, chosen=True)), "20 MiB")
        self.assertEqual(plain(style.format_bytes(512, chosen=True)), "512 B")
        self.assertEqual(plain(style.format_bytes(1536, chosen=True)), "1.5 KiB")
        self.assertEqual(plain(style.format_ns(100, chosen=True)), "100 ns")

    def test_times_choose_their_unit(self):
        for value, text in (
            (0, "0 ns"),
            (0.25, "0.25 ns"),
            (4.1, "4.10 ns"),
            (9.996, "10.0 ns"),
            (52.04, "52.0 ns"),
            (310.4, "310 ns"),
            (999.9, "1.00 µs"),
            (1240, "1.24 µs"),
            (10.2e6, "10.2 ms"),
            (3e9, "3.00 s"),
        ):
            self.assertEqual(plain(style.format_ns(value)), text, value)

    def test_counts_have_thin_separators(self):
        self.assertEqual(style.format_count(19157), "19\u202f157")
        self.assertEqual(style.format_count(999), "999")
        self.assertEqual(plain(style.format_rate(17823456)), "17.8 million")
        self.assertEqual(style.format_rate(12), "12.0")
        self.assertEqual(plain(style.format_count(1234567)), "1 234 567")
        self.assertEqual(plain(style.plural(1, "retry")), "1 retry")
        self.assertEqual(plain(style.plural(2, "retry")), "2 retries")
        self.assertEqual(plain(style.plural(1000, "event")), "1 000 events")

    def test_percentages_never_call_a_change_zero(self):
        for value, signed, text in (
            (0.0834, False, "8.3 %"),
            (-0.0834, True, "-8.3 %"),
            (0.0834, True, "+8.3 %"),
            (3.46, True, "+346 %"),
            (0, True, "0.0 %"),
            (0.0001, True, "< +0.1 %"),
            (0.0001, False, "< 0.1 %"),
        ):
            self.assertEqual(plain(style.format_percent(value, signed)), text, value)

    def test_ratios(self):
        self.assertEqual(style.format_ratio(1.0834), "1.08×")
        self.assertEqual(style.format_ratio(30.14), "30.1×")
        self.assertEqual(style.format_ratio(131.2), "131×")

    def test_a_shortened_text_fits(self):
        long = "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"
        short = style.shorten(long, 8, 100)
        self.assertLessEqual(style.text_width(short, 8), 100)
        self.assertTrue(short.endswith("…") and long.startswith(short[:-1]))
        self.assertEqual(style.shorten("abc", 8, 100), "abc")


class Colors(unittest.TestCase):
    def test_light_values_are_distinct_since_they_name_their_colour_in_an_svg(self):
        light = [value for value, _ in style.COLORS.values()]
        self.assertEqual(len(light), len(set(light)))

    def test_text_is_readable_on_its_ground_in_both_themes(self):
        for theme in (0, 1):
            for name in ("ink", "muted", "alarm", "good", "allocated"):
                for ground in ("plate", "raised"):
                    ratio = contrast(style.COLORS[name][theme], style.COLORS[ground][theme])
                    # 3 is what WCAG asks of large text and graphics, 4.5 of running text.
                    least = 4.5 if name in ("ink", "muted") else 3
                    self.assertGreaterEqual(ratio, least, (name, ground, theme))


def contrast(first, second):
    """WCAG 2's contrast ratio."""

    def luminance(text):
        channels = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


class Rendering(unittest.TestCase):
    def test_an_inline_svg_follows_the_theme_and_the_file_does_not(self):
        canvas = style.Canvas(60)
        canvas.text(8, 20, "a < b", weight="bold")
        axes = canvas.axes(10, 20, 100, 30)
        axes.plot([0, 1], [0, 1], color=style.color("allocated"))
        svg, png, inline = style.render(canvas, "test-figure")
        root = xml.etree.ElementTree.fromstring(svg)
        self.assertTrue(root.tag.endswith("svg"))
        self.assertIn(style.color("allocated"), svg)
        self.assertNotIn("var(", svg)
        self.assertTrue(png.startswith(b"\x89PNG"))
        self.assertIn("var(--allocated)", inline)
        self.assertNotIn(style.color("allocated"), inline)
        self.assertNotIn("DejaVu", inline)
        self.assertNotIn("http", inline)
        xml.etree.ElementTree.fromstring(inline)

    def test_the_same_figure_gives_the_same_bytes(self):
        def draw():
            canvas = style.Canvas(40)
            canvas.axes(0, 0, 50, 20).plot([0, 1], [1, 0])
            return style.render(canvas, "same")

        self.assertEqual(draw(), draw())


if __name__ == "__main__":
    unittest.main()
