"""Pictures of what the race checker found, and a page that lists them.

    bazel run //reports:race -- REPORTS.jsonl --out DIR

Writes DIR/race-1.svg, DIR/race-1.png and so on, one pair a report, then DIR/index.html.
"""

import os
import sys

from reports import markup, program, race_layout, race_picture, race_records, style
from reports.page import write_file
from reports.reader import ResultError

PICTURES_MAX = 200


def stem(race):
    return f"race-{race.number}"


def section(race, svg):
    """HTML of a report."""
    sides = [side for side in (race.first, race.second) if side]
    names = " and ".join(race_layout.short_name(side.what) for side in sides)
    anchor = stem(race)
    title = f"{race.number}. {race.rule}: {names}"
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{markup.escape(title)}" ', 1)
    width = race_width(svg)
    files = f'<a href="{anchor}.png">PNG</a>, <a href="{anchor}.svg">SVG</a>'
    return (
        f'<h2 id="{anchor}">{markup.breakable(title)}</h2>\n'
        f'<div class="scroll race"><figure style="max-width:none;width:{width}px">{svg}</figure>'
        f"</div>\n"
        f'<p class="caption">Time goes from left to right, in the order of submission. '
        f"Files: {files}.</p>\n"
        f"<details><summary>The report in words</summary>"
        f'<pre class="words">{markup.escape(race.text)}</pre></details>\n'
    )


def race_width(svg):
    """Pixels: the picture is not scaled down on a small screen, it scrolls."""
    view = svg.split('viewBox="', 1)[1].split('"', 1)[0]
    return round(float(view.split()[2]) * 96 / 72)


def table(races):
    rows = []
    for race in races:
        link = f'<a href="#{stem(race)}">{race.number}</a>'
        cells = [markup.heading(link), f'<td class="text">{markup.escape(race.rule)}</td>']
        for side in (race.first, race.second):
            words = "–"
            if side:
                place = race_layout.short_site(side.place)
                words = race_layout.short_name(side.what) + (f", {place}" if place else "")
            cells.append(f'<td class="text">{markup.breakable(words)}</td>')
        cells.append(f'<td class="text wrap">{markup.escape(race.missing)}</td>')
        rows.append("".join(cells))
    return markup.table(
        ["Race<", "Rule<", "First<", "Second<", "What is missing<"], rows, "Races"
    )


CSS = (
    ".race{padding:8px}.race figure{margin:0}.wrap{white-space:normal!important;min-width:260px}\n"
    ".words{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem}\n"
)


def page(path, races, pictures):
    name = os.path.basename(path)
    head = (
        f"<h1>{style.plural(len(races), 'race')} in {markup.breakable(name)}</h1>\n"
        '<p class="facts">Two uses of the same memory that nothing orders, whatever happened in '
        "the run that was watched. The dashed arrow is the order that is missing.</p>\n"
    )
    if not races:
        sections = [head, '<p class="answer">The checker found no race.</p>\n']
    else:
        sections = [head, table(races)]
        sections += [section(race, pictures[race.number]) for race in races[:PICTURES_MAX]]
    if len(races) > PICTURES_MAX:
        sections.append(f'<p class="note">Only the first {PICTURES_MAX} have pictures.</p>\n')
    return markup.document(f"Races: {name}", sections).replace("</style>", CSS + "</style>", 1)


def build(path, folder):
    """Writes the files; returns the path of the page."""
    races = race_records.load(path)
    os.makedirs(folder, exist_ok=True)
    pictures = {}
    for race in races[:PICTURES_MAX]:
        svg, png, inline = style.render(race_picture.draw(race), stem(race))
        write_file(os.path.join(folder, f"{stem(race)}.svg"), svg.encode("utf-8"))
        write_file(os.path.join(folder, f"{stem(race)}.png"), png)
        pictures[race.number] = inline
    index = os.path.join(folder, "index.html")
    write_file(index, page(path, races, pictures).encode("utf-8"))
    return index


def complain(text, status):
    print(f"race: {text}", file=sys.stderr)
    return status


def main(arguments=None):
    parser = program.Parser(
        prog="race",
        description="Draws what the race checker found: DIR/index.html and a picture a report.",
    )
    parser.add_argument("file", metavar="FILE", help="the checker's report file (JSON lines)")
    parser.add_argument("--out", metavar="DIR", required=True, help="where the pictures go")
    options = parser.parse_args(arguments)
    base = os.environ.get("BUILD_WORKING_DIRECTORY", "")
    try:
        index = build(os.path.join(base, options.file), os.path.join(base, options.out))
    except ResultError as error:
        return complain(error, 2)
    except OSError as error:
        return complain(
            f"{error.filename}: {error.strerror}; expected a folder that can be written", 2
        )
    except ImportError as error:
        return complain(f"{error.name} is not installed; ./setup installs it", 3)
    except KeyboardInterrupt:
        return complain("interrupted; no page was written", 130)
    print(index)
    return 0


if __name__ == "__main__":
    sys.exit(program.run("race", main))
