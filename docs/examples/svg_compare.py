"""Whether a committed picture shows what was drawn anew."""

import pathlib
import re

CORNERS_MIN = 4


def words_of(svg):
    return [re.sub(r"<[^>]*>", "", text) for text in re.findall(r"<text.*?</text>", svg, re.S)]


def corners_of(svg):
    """Corners of areas and lines, in whole points: releases of matplotlib differ in less."""
    paths = re.findall(r'<path d="([^"]*)"', svg)
    return [[round(float(number)) for number in re.findall(r"-?[\d.]+", path)] for path in paths]


def check_same(case, committed, drawn):
    """CASE is the test; the others are files. Returns the words."""
    committed, drawn = (pathlib.Path(file).read_text(encoding="utf-8") for file in (committed, drawn))
    case.assertEqual(words_of(committed), words_of(drawn))
    case.assertEqual(corners_of(committed), corners_of(drawn))
    case.assertGreater(len(corners_of(drawn)), CORNERS_MIN)
    return words_of(drawn)
