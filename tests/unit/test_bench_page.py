"""docs/performance.md has what `make bench` prints: blocks between marks, each of a part of the benchmark."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import tpucc
from tests.support.command_line import SMALL
from tpucc.diagnostics import UsageError

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


def test_execution_without_the_package_onnx_says_that_it_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    source = (ROOT / "benchmarks" / "bench.py").read_text("utf-8")
    space: dict[str, object] = {"UsageError": UsageError}
    exec(source[source.index("def in_onnxruntime(") : source.index("def weights_of(")], space)
    monkeypatch.setitem(sys.modules, "onnx", None)
    made, words = space["in_onnxruntime"](tpucc.compile_source(SMALL))  # type: ignore[operator]
    assert made is None
    assert words == [
        "  the backend onnxruntime needs a package that isn't installed: onnx",
        "    python -m pip install 'tpucc[onnxruntime]' installs what it needs",
    ]
