"""Inputs whose columns are scaled apart are the host's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tpucc
from tests.support.cases import each
from tests.support.operator_graphs import applied, built, context
from tpucc.passes.place import place

HEAD = """weights random(seed=1)
model m(x: f32[3, 4], y: f32[3, 4]):
    weight w: f32[4, 5]
    weight b: f32[4]
    weight c: f32[4]
    weight d: f32[1]
    """


@each(
    {
        "a scaler": ("return ((x - b) * c) @ w", {"sub", "mul"}),
        "with what is added": ("return (x * c + b) @ w", {"mul", "add"}),
        "a division": ("return (x / c + b) @ w", {"div", "add"}),
        "values in other places": ("return (concat([x[:, 2:], x[:, :2]], axis=1) * c) @ w", {"mul"}),
        "a step before": ("return ((x + 1.0) * c) @ w", {"add", "mul"}),
        "one factor for all": ("return (x * d) @ w", set[str]()),
        "a number": ("return (x * 0.5 - 1.0) @ w", set[str]()),
        "a sum alone": ("return (x + b) @ w", set[str]()),
        "two inputs": ("return (x * y) @ w", set[str]()),
        "a function of them": ("return (tanh(x) * c) @ w", set[str]()),
        "behind a product": ("return relu((x @ w)[:, :4] * c) @ w", set[str]()),
        "beside a product": ("return x @ w, x * c", set[str]()),
    }
)
def test_what_scales_an_input_by_several_factors_is_the_hosts(text: str, expected: set[str]) -> None:
    placed = applied(built(HEAD + text), place)
    computed = {node.name for node in placed if node.op in ("add", "sub", "mul", "div") and not node.on_device}
    assert computed == expected
    assert applied(placed, place) is placed


def test_the_former_way_can_be_asked_for() -> None:
    graph = built(f"{HEAD}return ((x - b) * c) @ w")
    assert {node.name for node in place(float_inputs=False).run(graph, context()) if node.on_device} == {"sub", "mul", "matmul"}


def test_the_note_names_the_last_step_of_a_line() -> None:
    (note,) = applied(built(f"{HEAD}return ((x - b) * c + b) @ w"), place).notes
    assert note.startswith("input columns differ in size; ")
    assert note.endswith(" so the host scales them in float32: add (line 7)")


def test_small_columns_keep_their_accuracy(tmp_path: Path) -> None:
    """Columns from 0.01 to 1,000 are made alike, and then multiplied."""
    source = HEAD.replace("random(seed=1)", '"w.npz"').replace("[3, 4]", "[64, 4]").replace(", y: f32[64, 4]", "")
    source += "return ((x - b) * c) @ w"
    draw = np.random.default_rng(0)
    spread = np.array([0.01, 1, 30, 1000], np.float32)
    weights = {"b": 3 * spread, "c": 1 / spread, "d": np.ones(1, np.float32), "w": draw.normal(size=(4, 5)).astype(np.float32)}
    x = ((draw.normal(size=(64, 4)) + 3) * spread).astype(np.float32)
    np.savez(tmp_path / "w.npz", **weights)
    np.savez(tmp_path / "x.npz", x=x)
    exact = ((x.astype(np.float64) - weights["b"]) * weights["c"]) @ weights["w"]
    signals = []
    for asked in (True, False):
        made = tpucc.compile_source(source, folder=tmp_path, calibration=tmp_path / "x.npz", settings={"place": {"float_inputs": asked}})
        (found,) = made.run(x=x).values()
        error = found - exact
        signals.append(10 * np.log10((exact**2).sum() / (error**2).sum()))
    assert signals[0] > 35
    assert signals[1] < 15
