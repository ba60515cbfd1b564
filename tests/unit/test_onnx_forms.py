"""The ONNX form of every operator: ONNX Runtime computes what the reference does, but for the rounding of float32."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.support.cases import each
from tests.unit.test_ops import drawn
from tpucc.diagnostics import Origin, UsageError
from tpucc.interop.onnx.writing.file import onnx_bytes
from tpucc.interop.onnx.writing.graph import onnx_model
from tpucc.interop.outside import Session
from tpucc.ir import Graph, NoAttributes, Node, Output
from tpucc.numerics import AnyArray
from tpucc.ops import INTERNAL, OPS
from tpucc.ops.onnx_form import Form, NoForm
from tpucc.ops.opdef import OpDef

FORMS = [op for op in OPS.values() if isinstance(op.onnx, Form)]
CLOSE = 2e-6
"""Float32 values differ by less than this share of the largest one."""


def graph_of(op: OpDef[Any]) -> tuple[Graph, dict[str, AnyArray], dict[str, AnyArray]]:
    """A graph with all examples of an operator, its inputs, and what the reference makes of them."""
    nodes, inputs, expected = list[Node](), dict[str, AnyArray](), dict[str, AnyArray]()
    for index, example in enumerate(op.examples):
        names = [f"x{index}.{operand}" for operand in range(len(example.operands))]
        nodes += [Node(name, "input", (), NoAttributes(), t, Origin()) for name, t in zip(names, example.operands, strict=True)]
        type_ = op.infer(example.attributes, example.operands)
        nodes.append(Node(f"y{index}", op.name, tuple(names), example.attributes, type_, Origin()))
        operands = drawn(example.operands)
        inputs |= zip(names, operands, strict=True)
        expected[f"y{index}"] = op.reference(example.attributes, operands)
    return Graph(op.name, tuple(nodes), tuple(Output(name, name) for name in expected)), inputs, expected


@each(FORMS)
def test_a_form_computes_what_the_reference_does(op: OpDef[Any]) -> None:
    graph, inputs, expected = graph_of(op)
    model = onnx_model(graph)
    data = onnx_bytes(model)
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    found = Session(model, data).run(inputs)
    for name, wanted in expected.items():
        assert (found[name].shape, found[name].dtype) == (wanted.shape, wanted.dtype)
        if wanted.dtype.kind == "f":
            assert np.abs(found[name].astype(np.float64) - wanted).max() <= CLOSE * np.abs(wanted).max(), name
        else:
            np.testing.assert_array_equal(found[name], wanted)


def test_every_operator_of_the_language_has_a_form() -> None:
    without = {name: op.onnx for name, op in OPS.items() if isinstance(op.onnx, NoForm)}
    assert without.keys() <= INTERNAL
    assert all(form.why for form in without.values())


def test_an_operator_without_a_form_is_named() -> None:
    state = OPS["state"]
    example = state.examples[0]
    node = Node("s", "state", (), example.attributes, example.operands[0], Origin())
    with pytest.raises(UsageError, match=r"E1022.*s: state has no ONNX form: training makes it"):
        onnx_model(Graph("g", (node,), (Output("y", "s"),)))


def test_operators_that_differ_in_the_last_bits_are_listed() -> None:
    """All others give the reference's bits. Where sums are in another order, results may be the same by chance."""
    page = (Path(__file__).parents[2] / "docs" / "onnx-export.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.+`) \| \S.* \|$", page.partition("| why results differ")[2].partition("\n\n")[0], re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed <= {op.name for op in FORMS}
    differing = set()
    for op in FORMS:
        graph, inputs, expected = graph_of(op)
        found = Session(onnx_model(graph)).run(inputs)
        differing |= {op.name for name, wanted in expected.items() if not np.array_equal(found[name], wanted)}
    assert differing <= listed, f"docs/onnx-export.md lacks a row of {differing - listed}"
    assert len(differing) > len(listed) / 2, "the list names what differs, and little else"
