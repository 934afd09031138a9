"""The one place for colours, fonts, number formats and figure sizes.

Colours are Okabe and Ito's, told apart by colour-blind readers and in grey print, and one colour
means one thing on every figure and table: blue is allocated memory, orange is memory that is
reserved and idle, vermilion is trouble. Each has a value for light and for dark pages. A figure is
drawn in the light values; where it stands in a page, the values are replaced by the page's
variables, so that it follows the reader's theme. As a file it keeps the light ones, on a white
plate.

Figures are as wide as a phone: on a wide screen two stand side by side, so their text is readable
on both.
"""

import io
import logging
import math
import re

# name: (light, dark). Light values are distinct: they are how a colour is found again in an SVG.
COLORS = {
    "ink": ("#1f2328", "#e6edf3"),
    "muted": ("#59636e", "#9ba7b4"),
    "grid": ("#d1d9e0", "#3d444d"),
    "plate": ("#ffffff", "#0d1117"),
    "raised": ("#f6f8fa", "#151b23"),
    "allocated": ("#0072b2", "#3d9bd9"),
    "idle": ("#e69f00", "#d9980a"),
    "pending": ("#cc79a7", "#cc79a7"),
    "alarm": ("#d55e00", "#ff7b33"),
    "good": ("#00805c", "#2fbf96"),
    "limit": ("#8c959f", "#76828e"),
}
HEAT_FULL, HEAT_ALPHA = 0.3, 0.5

FIGURE_WIDTH_PT = 332
MARGIN_PT, TITLE_PT = 8, 24
FONT_PT = 9
FONT_SMALL_PT = 8
FONT_FAMILY = "DejaVu Sans"
DOTS_PER_INCH, DOTS_PER_INCH_QUICK = 180, 110

NBSP = "\u00a0"
THIN = "\u202f"
MINUS = "\u2212"


def color(name):
    """The light value: what figures are drawn in."""
    return COLORS[name][0]


def theme_css():
    """The colours as variables of a page, for both themes and for print. --less and --more are the
    channels of the heat colours, to be mixed with a strength.
    """

    def block(theme):
        values = {name: pair[theme] for name, pair in COLORS.items()}
        lines = [f"--{name}:{value};" for name, value in values.items()]
        for name, source in (("less", "allocated"), ("more", "idle")):
            channels = [str(int(values[source][k : k + 2], 16)) for k in (1, 3, 5)]
            lines.append(f"--{name}:{' '.join(channels)};")
        return "".join(lines)

    return (
        f":root{{color-scheme:light dark;{block(0)}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{block(1)}}}}}\n"
    )


# --------------------------------------------------------------------------------------------------
# Numbers. Three significant digits, always with a unit, no break between number and unit.


def digits(value):
    """Three significant digits, without an exponent; whole numbers from 100 on."""
    size = abs(value)
    if size == 0:
        return "0"
    decimals = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    if size < 0.995:
        decimals = min(2 - math.floor(math.log10(size)) - 1, 9)
    text = f"{size:.{decimals}f}"
    return (MINUS if value < 0 else "") + text


def scaled(value, step, units):
    """The unit is the largest in which the printed number is at least 1."""
    size, index = abs(value), 0
    while index + 1 < len(units) and size >= step * (1 - 0.5 / step):
        size, index = size / step, index + 1
    return math.copysign(size, value), units[index]


def format_bytes(value, chosen=False):
    """1536 -> 1.50 KiB. A size that was CHOSEN rather than measured has no zeros to show:
    20971520 -> 20 MiB
    """
    number, unit = scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
    text = f"{abs(number):.0f}" if unit == "B" else digits(abs(number))
    return (MINUS if value < 0 else "") + (trimmed(text) if chosen else text) + NBSP + unit


def format_ns(value, chosen=False):
    """12.34 -> 12.3 ns, 4567 -> 4.57 µs"""
    number, unit = scaled(value, 1000, ("ns", "µs", "ms", "s"))
    return (trimmed(digits(number)) if chosen else digits(number)) + NBSP + unit


def trimmed(text):
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_count(value):
    """19157 -> 19 157, with a thin space"""
    return (MINUS if value < 0 else "") + f"{abs(value):,.0f}".replace(",", THIN)


def plural(value, noun):
    """1 retry, 2 retries"""
    forms = {"retry": "retries"}
    return format_count(value) + NBSP + (noun if value == 1 else forms.get(noun, noun + "s"))


def format_rate(value):
    """17823456 -> 17.8 million; a number of things, for "a second" to follow"""
    number, unit = scaled(value, 1000, ("", "thousand", "million", "billion"))
    return digits(number) + (NBSP + unit if unit else "")


def format_percent(share, signed=False):
    """0.0834 -> 8.3 %; what rounds to zero but is not says so."""
    percent = abs(share) * 100
    text = f"{percent:.0f}" if percent >= 99.95 else f"{percent:.1f}"
    if share != 0 and percent < 0.05:
        text = "<" + THIN + "0.1"
    sign = MINUS if share < 0 else "+" if signed and share > 0 else ""
    return (sign + text if not text.startswith("<") else f"<{THIN}{sign}0.1") + NBSP + "%"


def format_ratio(value):
    """1.0834 -> 1.08×"""
    return (
        f"{value:.2f}×" if value < 9.995 else f"{value:.1f}×" if value < 99.95 else f"{value:.0f}×"
    )


def heat(change):
    """(colour, strength from 0 to 1) of a cell that shows a relative change: less and more differ in
    hue, and the strongest tint is that of HEAT_FULL. Text on it stays ink, so it stays readable.
    """
    return ("allocated" if change < 0 else "idle"), min(1.0, abs(change) / HEAT_FULL)


# --------------------------------------------------------------------------------------------------
# Figures.


class Canvas:
    """A matplotlib figure, mostly of the common width, laid out in points from its top left
    corner.
    """

    def __init__(self, height_pt, width_pt=FIGURE_WIDTH_PT):
        # Not at the top: pages without figures, and tests of formats, need no matplotlib. pyplot is
        # left out; it would take as long to import as some figures take to draw.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        import matplotlib
        from matplotlib.figure import Figure

        matplotlib.rcParams.update(
            {
                "font.family": FONT_FAMILY,
                "font.size": FONT_SMALL_PT,
                "svg.fonttype": "none",
                "text.color": color("ink"),
                "axes.edgecolor": color("grid"),
                "axes.labelcolor": color("muted"),
                "xtick.color": color("muted"),
                "ytick.color": color("muted"),
                "axes.linewidth": 0.8,
                "xtick.major.size": 0,
                "ytick.major.size": 0,
                "xtick.major.pad": 3,
                "ytick.major.pad": 3,
                "hatch.linewidth": 0.6,
                "path.simplify": False,
            }
        )
        self.width, self.height = width_pt, height_pt
        self.figure = Figure(figsize=(self.width / 72, self.height / 72))

    def axes(self, left, top, width, height):
        axes = self.figure.add_axes(
            [
                left / self.width,
                1 - (top + height) / self.height,
                width / self.width,
                height / self.height,
            ]
        )
        axes.patch.set_visible(False)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        return axes

    def text(self, left, top, text, size=FONT_PT, **keywords):
        """The baseline is at TOP. A name may have dollar signs: no formula is meant."""
        keywords = {"parse_math": False} | keywords
        return self.figure.text(
            left / self.width, 1 - top / self.height, text, fontsize=size, **keywords
        )

    def title(self, text):
        """The first line, for a figure that leaves its page. Returns the points that it takes."""
        size = FONT_PT + 1.5
        self.text(
            MARGIN_PT, 14, shorten(text, size, self.width - 2 * MARGIN_PT), size, weight="bold"
        )
        return TITLE_PT

    def key(self, left, top, entries):
        """Words in the colour of what they name: (text, colour, "area" or "line")."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Rectangle

        for text, name, kind in entries:
            x, y = left / self.width, 1 - (top - 3) / self.height
            if kind == "area":
                self.figure.add_artist(
                    Rectangle(
                        (x, y - 4 / self.height),
                        8 / self.width,
                        8 / self.height,
                        facecolor=color(name),
                        linewidth=0,
                    )
                )
            else:
                self.figure.add_artist(
                    Line2D(
                        [x, x + 12 / self.width],
                        [y, y],
                        color=color(name),
                        linewidth=1.2,
                        dashes=(3, 2),
                    )
                )
            start = left + (11 if kind == "area" else 15)
            self.text(start, top, text, FONT_SMALL_PT, color=color("muted"))
            left = start + text_width(text, FONT_SMALL_PT) + 12


def text_width(text, size):
    """Points; a good guess for a proportional font, at no cost."""
    narrow = sum(text.count(letter) for letter in "iljtfrI.,:;' |()[]" + NBSP + THIN)
    return size * (0.34 * narrow + 0.62 * (len(text) - narrow))


def shorten(text, size, width):
    """TEXT cut so that it is at most WIDTH points wide."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def render(canvas, name, quick=False):
    """(SVG file, PNG file, SVG for a page) of a canvas, as text, bytes and text."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure = canvas.figure
    figure.patch.set_facecolor(color("plate"))
    with matplotlib.rc_context({"svg.hashsalt": name}):
        buffer = io.StringIO()
        FigureCanvasSVG(figure).print_svg(
            buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    svg = tidy_svg(buffer.getvalue())
    pixels = io.BytesIO()
    figure.set_dpi(DOTS_PER_INCH_QUICK if quick else DOTS_PER_INCH)
    FigureCanvasAgg(figure).print_png(pixels, metadata={"Software": None})
    return svg, pixels.getvalue(), inline_svg(svg, name)


def tidy_svg(svg):
    """Without the document type, metadata, names of elements that nothing refers to, and digits
    that no screen shows.
    """
    svg = re.sub(r"<!DOCTYPE[^>]*>\s*", "", svg)
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    used = set(re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", svg))
    used = {first or second for first, second in used}
    svg = re.sub(
        r' id="([^"]+)"', lambda match: match.group(0) if match.group(1) in used else "", svg
    )
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.S)
    svg = re.sub(r"(\.\d\d)\d+", r"\1", svg)
    return re.sub(r"\s*\n\s*", "\n", svg)


def inline_svg(svg, name):
    """For a page: no plate, the page's colours and font, names that are unique in the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg, flags=re.S).replace("xlink:href", "href")
    svg = re.sub(r'(<svg [^>]*?) ?width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg [^>]*?) ?height="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace(f"fill: {color('plate')}", "fill: none", 1)
    svg = re.sub(r'(id="|url\(#|href="#)', lambda match: f"{match.group(1)}{name}-", svg)
    svg = re.sub(rf"(font: [^;\"]*?\d(?:\.\d+)?px) '{FONT_FAMILY}'[^;\"]*", r"\1 var(--font)", svg)
    for key, (light, _) in COLORS.items():
        svg = svg.replace(light, f"var(--{key})")
    return svg
