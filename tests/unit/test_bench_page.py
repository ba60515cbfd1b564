"""docs/performance.md has what `make bench` prints: blocks between marks, each of a part of the benchmark."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "performance.md").read_text("utf-8")


def test_each_part_has_a_block_and_all_figures_stand_in_blocks() -> None:
    parts = re.findall(r"<!-- bench (\w+) -->\n```text\n[^`]+```\n<!-- end -->", PAGE)
    assert parts == re.findall(r"<!-- bench (\w+) -->", PAGE)
    source = (ROOT / "benchmarks" / "bench.py").read_text("utf-8")
    (functions,) = re.findall(r"functions = \(([^)]+)\)", source)
    assert parts == functions.split(", ")
    assert "|---" not in PAGE
    assert re.findall(r"\d ?(?:ms|s|MB)\b", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)) == []


def test_the_output_replaces_the_block_and_nothing_else() -> None:
    source = (ROOT / "benchmarks" / "bench.py").read_text("utf-8")
    space: dict[str, object] = {"re": re}
    exec(source[source.index("def with_output(") : source.index("def timed(")], space)
    replaced = space["with_output"](PAGE, "networks", "a\\1\n")  # type: ignore[operator]
    block = re.search(r"<!-- bench networks -->\n.*?<!-- end -->", PAGE, re.DOTALL)
    assert block is not None
    assert replaced == PAGE.replace(block[0], "<!-- bench networks -->\n```text\na\\1\n```\n<!-- end -->")
    assert space["with_output"](PAGE, "none", "x") == PAGE  # type: ignore[operator]
