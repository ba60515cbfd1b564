"""Legends: each entry is whole and inside, and the height is the lines' that are there."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tests.support.pictures import SVG
from tpucc.see.heading import LINE, SIGN, box_sign, dot_sign, legend, line_sign
from tpucc.see.text import SMALL, text_width

ENTRIES = [(box_sign({"fill": "#123456"}), "the first"), (dot_sign({}), "another"), (line_sign("ink", 12.0), "a line")]


def places(right: float) -> tuple[list[tuple[float, float, str]], float]:
    """Where the texts of the entries begin, and the height of the legend."""
    found = legend(ENTRIES, 20, 100, right)
    texts = ET.fromstring(f'<svg xmlns="{SVG[1:-1]}">{found.markup}</svg>').iter(f"{SVG}text")
    return [(float(text.get("x", "")), float(text.get("y", "")), "".join(text.itertext())) for text in texts], found.height


def test_entries_stand_in_a_line_or_below_each_other_where_they_have_no_room() -> None:
    wide, height = places(800)
    assert {y for _, y, _ in wide} == {100 + LINE / 2 + 4}
    assert height == LINE
    narrow, height = places(120)
    assert [x for x, _, _ in narrow] == [20 + SIGN + 6] * 3
    assert [y for _, y, _ in narrow] == [100 + LINE / 2 + 4 + LINE * place for place in range(3)]
    assert height == 3 * LINE
    assert all(x + text_width(words, SMALL) <= 120 for x, _, words in narrow)


def test_a_legend_that_says_nothing_takes_no_room_and_a_long_entry_begins_one_line() -> None:
    assert legend([], 20, 100, 800).height == 0
    assert places(30)[1] == 3 * LINE
