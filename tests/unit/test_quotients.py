"""Quotients of the host: the signal that they have, and that the device computes what its reference does."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tpucc
from tests.support.cases import each
from tpucc.explain.noise import noise_of
from tpucc.layers.kinds import is_layer
from tpucc.numerics import AnyArray
from tpucc.runtime.check import compare_with_reference, float_reference

ROWS, COLUMNS = 9, 11
HEAD = f"""
weights random(seed=0)
calibration "rows.npz"
model m(x: f32[{ROWS}, {COLUMNS}] in [-1.0, 1.0]):
    weight w: f32[{COLUMNS}, 300]
    weight v: f32[{COLUMNS}, 300]
    weight u: f32[300, 5]
    h = x @ w
    g = x @ v
    a = maximum(h, 0.01)
    s = h * h
    i = reshape(x, [1, 3, 3, 11])
"""
SQUARES, SUM = "sum(h * h, axis=1, keepdims=True)", "axis=1, keepdims=True"
QUOTIENTS = {
    "of an input": (f"relu(x) / sqrt(sum(x * x, {SUM}))", np.inf),
    "a weighted mean": (f"sum(relu(h) * exp(g), {SUM}) / sum(exp(g), {SUM})", 50),
    "a mean weighted by squares": (f"sum(relu(h) * (g * g), {SUM}) / sum(g * g, {SUM})", 46),
    "a product with a reciprocal": (f"(relu(h) * h) * (1.0 / {SQUARES})", 10.5),
    "one that a layer reads": (f"(relu(h) * h / sqrt({SQUARES})) @ u", 28),
    "clamped": ("clip(x / (hard_sigmoid(x * 6.0) + 0.000001), -2.0, 2.0)", np.inf),
    "clamped before a layer": ("clip(1.0 / (h * h + 0.0001), 0.0, 100.0) @ u", 5),
    "guarded by a clamp": ("1.0 / maximum(h, 0.01)", 3),
    "guarded by a sum": ("1.0 / (relu(h) + 0.01)", 3),
    "shares of what is guarded": (f"a / sum(a, {SUM})", 3),
    "of squares that the device reads, too": (f"h / sqrt(mean(s, {SUM}) + 0.000001), s @ u", 9),
    "averages of what the host has": ("avg_pool(i * softmax(i * 8.0), size=2) / avg_pool(softmax(i * 8.0), size=2)", np.inf),
}
"""With the least signal in decibels. In integers, the numerators leave 19.1, 45.3, 3.7 and 23.2 of it, and infinite means of squares."""


def run(results: str, folder: Path) -> tuple[tpucc.Executable, dict[str, AnyArray], dict[str, AnyArray]]:
    """The model and its results for rows of sizes from 0.01 to 1, on the device and in float32. Its integers are the reference's."""
    sizes = np.geomspace(0.01, 1, ROWS).reshape(ROWS, 1)
    inputs = {"x": (np.random.default_rng(1).uniform(-1, 1, (ROWS, COLUMNS)) * sizes).astype(np.float32)}
    np.savez(folder / "rows.npz", **inputs)
    exe = tpucc.compile_source(f"{HEAD}    return {results}\n", folder=folder)
    made = exe.compilation
    assert made is not None
    assert made.graph is not None
    assert made.layers is not None
    assert not any(found.unequal for found in compare_with_reference(exe.runtime, made.layers, inputs))
    return exe, exe.run(inputs), float_reference(made.graph, inputs)


@each(QUOTIENTS)
def test_a_numerator_is_not_rounded_on_the_way_to_its_quotient(text: str, least: float, tmp_path: Path) -> None:
    _, found, exact = run(text, tmp_path)
    error = next(iter(noise_of(found, exact).values()))
    assert error.sqnr >= least


def test_the_noise_of_a_quotient_is_that_of_the_layer_that_it_is_computed_from(tmp_path: Path) -> None:
    """A clamp of a value that the host reads as well isn't sent beside it: the layer is all that the device computes."""
    exe, found, _ = run(f"h, relu(h) / sqrt({SQUARES})", tmp_path)
    h, quotient = found.values()
    assert np.allclose(quotient, np.maximum(h, 0) / np.sqrt(np.square(h).sum(axis=1, keepdims=True)), rtol=1e-6)
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    assert [node.op for node in exe.compilation.layers if is_layer(node)] == ["fc"]


def test_each_reason_is_one_note_that_ends_with_names(tmp_path: Path) -> None:
    """The divisor and the numerator have one note, and what is a function of the quotient another."""
    exe, _, _ = run(QUOTIENTS["clamped before a layer"][0], tmp_path)
    assert exe.notes == (
        "divisors, numerators, and arguments of sqrt and log stay in float32 on the host, back to the last layer with weights: "
        "mul (line 13) and add (line 13)",
        "functions of quotients stay in float32 on the host, as the range of the quotients can be far wider: clip (line 13)",
    )
    exe, _, _ = run(QUOTIENTS["a product with a reciprocal"][0], tmp_path)
    assert [note.partition(":")[2] for note in exe.notes if "numerators" in note] == [" relu (line 13), mul (line 13) and mul.1 (line 13)"]
