"""What the views say in cycles and in seconds are numbers of `stats.json`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cases import one_of
from tests.support.reports import PROGRAMS, executable_of, report_of
from tests.support.visits import settle
from tpucc.explain.roofs import works_of
from tpucc.sim.durations import duration

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser
CYCLES = re.compile(r"([\d,]+) cycles?\b")
SECONDS = re.compile(r"(?<![\d.])([\d,.]+ (?:ns|µs|ms|s))(?![\w/])")
STRETCHES = """() => {
  const stretches = document.querySelector("#view-summary .peak svg").querySelectorAll("rect[fill-opacity='0'] title");
  return [...stretches].map((title) => title.textContent);
}"""
"""Of the picture of the peak, for each stretch of time the layers with their cycles in it."""
TEXTS = """(name) => {
  const view = (document.getElementById(`view-${name}`) ?? document.querySelector(name)).cloneNode(true);
  for (const stretch of view.querySelectorAll("rect[fill-opacity='0']")) stretch.remove();
  return [view.textContent, ...[...view.querySelectorAll("[title]")].map((one) => one.title)].join("\\n");
}"""
"""All that a view says, what it says under the pointer included, but for these stretches."""


def leaves(value: Any) -> Iterator[Any]:
    """The numbers in a value of JSON."""
    if isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value


@pytest.mark.long
@pytest.mark.parametrize("stem", one_of(3, ["02_iris", "05_digits_cnn", "06_digits_lstm", "11_resnet50", "14_digits_resnet"]))
def test_cycles_and_seconds_of_all_views_are_those_of_the_numbers(stem: str, open_page: OpenPage, tmp_path: Path) -> None:
    """Beside them are numbers of the machine: how long fetches take, and what the host's steps and transfers are assumed to take."""
    exe = executable_of(stem)
    known = [*leaves(exe.stats), *leaves([asdict(each) for each in exe.runtime.faster])]
    target, fetches = exe.runtime.program.target, [round(each.fetch_cycles(exe.runtime.program.target)) for each in works_of(exe.runtime)]
    cycles = {f"{value:,}" for value in [*known, target.tile_fetch_cycles, *fetches] if isinstance(value, int)}
    assumed = [*(target.host_step_seconds * count for count in (1, 2, 3)), target.host_latency_seconds]
    seconds = {duration(value) for value in [*known, *assumed] if isinstance(value, float) and value >= 0}
    page = open_page(report_of(PROGRAMS / f"{stem}.tpu", tmp_path))
    said = 0
    for view in ("header", "summary", "roofline", "whatif"):
        if view != "header":
            page.click(f"#tab-{view}")
            settle(page)
        words = page.evaluate(TEXTS, view)
        found = CYCLES.findall(words)
        assert set(found) <= cycles, view
        assert set(SECONDS.findall(words)) <= seconds, view
        said += len(found)
    assert said > 3


def test_the_stretches_of_the_picture_of_the_peak_add_up_to_the_layers(open_page: OpenPage, tmp_path: Path) -> None:
    page, whole = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path)), Counter[str]()
    for stretch in page.evaluate(STRETCHES):
        for name, cycles in re.findall(r"(\S+) ([\d,]+) cycles?", stretch):
            whole[name] += int(cycles.replace(",", ""))
    assert whole == {layer["name"]: layer["cycles"] for layer in executable_of("05_digits_cnn").stats["layers"] if layer["cycles"]}
