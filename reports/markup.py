"""Pieces of a page: cells, tables, figures and the page itself, as HTML that needs no script and
nothing from outside.

Every measured number in a table carries its exact value (data-value), so that what is printed can
be checked and copied.
"""

import html
import os
import re

from reports import style

CSS_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page.css")


def escape(text):
    return html.escape(str(text), quote=True)


def breakable(text):
    """Escaped; a name may break after its punctuation, so that it fits a phone."""
    return re.sub(r"([_:,./-])(?=\w)", r"\1<wbr>", escape(text))


def prose(text):
    """Escaped text; what stands in backticks is a name."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def cell(text, value=None, classes="", heat=None, extra=""):
    """A table cell; VALUE is the exact number behind the text, HEAT a relative change that tints it,
    EXTRA is HTML below the text.
    """
    css = ""
    if heat:
        tint, strength = style.heat(heat)
        classes = f"{classes} {'less' if tint == 'allocated' else 'more'}".strip()
        css = f' style="--heat:{style.HEAT_ALPHA * strength:.2f}"'
    attributes = f' class="{classes}"' if classes else ""
    attributes += f' data-value="{value!r}"' if value is not None else ""
    attributes += css
    return f"<td{attributes}>{escape(text)}{extra}</td>"


def measured(value, formatted):
    """A cell with a number, or a dash where no file tells it."""
    return cell("–") if value is None else cell(formatted(value), value)


def heading(text, span=1):
    """The first cell of a row, or of several rows."""
    scope = "row" if span == 1 else f'rowgroup" rowspan="{span}'
    return f'<th scope="{scope}">{text}</th>'


def table(head, rows, label):
    """HEAD: texts; one that ends in "<" stands over texts, not numbers. ROWS: HTML of the cells of
    each row, or of a pair (class of the row, HTML).
    """
    heads = ""
    for text in head:
        classes = ' class="text"' if text.endswith("<") else ""
        heads += f'<th scope="col"{classes}>{escape(text.rstrip("<"))}</th>'
    body = ""
    for row in rows:
        classes, cells = row if isinstance(row, tuple) else ("", row)
        body += f'<tr class="{classes}">{cells}</tr>\n' if classes else f"<tr>{cells}</tr>\n"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def caption(text, source):
    """The line below a table. TEXT is HTML."""
    return f'<p class="caption">{text} Source: {source}.</p>\n'


def anchor(results, trace):
    """By number: names may differ in characters that an anchor cannot have."""
    return f"trace-{results.traces.index(trace) + 1}"


def tag(text, classes=""):
    return f'<span class="tag {classes}">{escape(text)}</span>'


def answer(text, failed=False):
    """A sentence that answers the reader's question."""
    return f'<p class="answer{" failed" if failed else ""}">{prose(text)}</p>\n'


def pictures(*columns):
    """Columns of figures and what goes with them; one below the other where the page is narrow."""
    return (
        '<div class="pictures">\n'
        + "".join(f"<div>{text}</div>\n" for text in columns)
        + "</div>\n"
    )


def figure(svg, name, title, text, source):
    """A figure with its words: what to see, and where it comes from."""
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
    files = f'<a href="figures/{name}.png">PNG</a>, <a href="figures/{name}.svg">SVG</a>'
    return (
        f"<figure>\n{svg}\n"
        f"<figcaption>{prose(text)} Source: {source}. Files: {files}.</figcaption>\n</figure>\n"
    )


def document(title, sections):
    with open(CSS_FILE, encoding="utf-8") as file:
        css = style.theme_css() + file.read()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n"
        f"<body>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )
