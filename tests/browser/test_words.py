"""Times as the page's script writes them: alone as Python does, and along an axis."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tpucc.see.kit import page_files
from tpucc.sim.durations import duration

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser

CLOCK = 7e8
ALONE = "<!doctype html><title>t</title>"


def said(open_page: OpenPage, expression: str, cycles: list[float]) -> list[str]:
    """What `words` makes of cycles at `CLOCK`."""
    source = f"{page_files('tpucc.see.kit', 'js/dom.js')}\n{page_files('tpucc.see.page', 'js/words.js')}"
    script = f"(cycles) => {{ const model = {{ machine: {{ clock_hz: {CLOCK} }} }};\n{source}\nreturn {expression}; }}"
    found: list[str] = open_page(ALONE).evaluate(script, cycles)
    return found


def test_a_time_is_written_as_in_the_terminal(open_page: OpenPage) -> None:
    draw = random.Random(0)
    cycles = [0, 1, 7, 699, 700, 699_700, 7 * 10**8, 5 * 10**12, *(int(10 ** draw.uniform(0, 11)) for _ in range(300))]
    assert said(open_page, "cycles.map(words.time)", cycles) == [duration(count / CLOCK) for count in cycles]


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([0, 500, 1000], ["0 µs", "0.714 µs", "1.429 µs"]),
        ([0, 10_000, 20_000], ["0 µs", "14.3 µs", "28.6 µs"]),
        ([7_000_000, 7_000_010, 7_000_020], ["10 ms", "10.0000143 ms", "10.0000286 ms"]),
        ([7000], ["10 µs"]),
        ([], []),
    ],
)
def test_the_ticks_of_an_axis_have_one_unit_and_differ(ticks: list[float], texts: list[str], open_page: OpenPage) -> None:
    assert said(open_page, "words.times(cycles)", ticks) == texts
