"""Whole graphs of operators: their values, and the check of their types."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.diagnostics import InputError, LimitError, Origin, ProgramError, Source, Span
from tpucc.ir import Attributes, Constant, Graph, NoAttributes, Node, Output, Quantisation, Range, TensorType, f32
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.dequantize import DequantizeAttributes
from tpucc.ops.evaluate import compute, evaluate
from tpucc.ops.leaky_relu import LeakyReluAttributes
from tpucc.ops.opdef import Array
from tpucc.ops.quantize import QuantizeAttributes
from tpucc.ops.softmax import SoftmaxAttributes
from tpucc.ops.verify import verify_operators
from tpucc.ops.weight import WeightAttributes
from tpucc.ops.zeros import ShapeAttributes

NONE = NoAttributes()
ORIGIN = Origin((Span(3, 9, 3, 14),))


def node(name: str, op: str, operands: Sequence[str] = (), attributes: Attributes = NONE, type_: TensorType | None = None) -> Node:
    return Node(name, op, tuple(operands), attributes, type_ or f32(2, 3), ORIGIN)


def constant(name: str, values: Any) -> Node:
    value = Constant(np.asarray(values, np.float32))
    return node(name, "constant", (), ConstantAttributes(value), TensorType("f32", value.shape))


def graph(*nodes: Node, outputs: Sequence[str] = ()) -> Graph:
    return Graph("g", nodes, tuple(Output(f"out{i}", name) for i, name in enumerate(outputs or [nodes[-1].name])))


def dense() -> Graph:
    return graph(
        node("x", "input"),
        constant("w", [[1, -1], [2, 0], [0, 3]]),
        node("y", "matmul", ["x", "w"], type_=f32(2, 2)),
        constant("b", [0.5, -0.5]),
        node("z", "add", ["y", "b"], type_=f32(2, 2)),
        node("r", "leaky_relu", ["z"], LeakyReluAttributes(0.5), f32(2, 2)),
        outputs=["r"],
    )


X = np.array([[1, 2, 3], [-4, 5, -6]], np.float32)


def test_values_of_a_dense_layer() -> None:
    assert {name: value.tolist() for name, value in evaluate(dense(), {"x": X}).items()} == {"r": [[5.5, 7.5], [6.5, -7.25]]}


def test_kept_values_come_along_and_no_others() -> None:
    found = evaluate(dense(), {"x": X}, keep=["y", "x"])
    assert sorted(found) == ["r", "x", "y"]
    assert found["y"].tolist() == [[5, 8], [6, -14]]
    assert sorted(evaluate(dense(), {"x": X, "unused": X}, keep=dense().by_name)) == ["b", "r", "w", "x", "y", "z"]


def test_values_are_freed_after_their_last_use() -> None:
    alive: list[weakref.ref[Array]] = []

    def fresh(_: Node, operands: Sequence[Array]) -> Array:
        assert sum(reference() is not None for reference in alive) <= 1 + len(operands)
        made = np.zeros((2, 3), np.float32)
        alive.append(weakref.ref(made))
        return made

    chain = [node("n0", "made"), *(node(f"n{i}", "made", [f"n{i - 1}"]) for i in range(1, 9))]
    assert list(evaluate(graph(*chain), {}, {"made": fresh})) == ["n8"]


def test_one_node_may_be_read_twice_and_be_two_outputs() -> None:
    g = graph(node("x", "input"), node("y", "mul", ["x", "x"]), outputs=["y", "y"])
    assert evaluate(g, {"x": X})["y"].tolist() == (X * X).tolist()


def test_other_packages_bring_their_operators() -> None:
    seen: list[str] = []

    def twice(at: Node, operands: Sequence[Array]) -> Array:
        seen.append(at.name)
        return operands[0] * np.float32(2)

    g = graph(node("x", "input"), node("y", "twice", ["x"]), node("w", "weight", (), WeightAttributes("k")), node("z", "add", ["y", "w"]))
    found = evaluate(g, {"x": X}, {"twice": twice, "weight": lambda at, _: np.ones(at.type.shape, np.float32)})
    assert seen == ["y"]
    assert found["z"].tolist() == (X * 2 + 1).tolist()


def test_dequantize_uses_the_type_of_its_operand() -> None:
    q = TensorType("i8", (2, 3), quantisation=Quantisation(0.5, 3))
    g = graph(
        node("x", "input"),
        node("q", "quantize", ["x"], QuantizeAttributes(0.5, 3), q),
        node("y", "dequantize", ["q"], DequantizeAttributes()),
    )
    assert evaluate(g, {"x": X})["y"].tolist() == X.tolist()
    assert compute(g["y"], [q], [np.array([[3, 4]], np.int8)]).tolist() == [[0, 0.5]]


def test_overflow_is_infinite_and_silent() -> None:
    g = graph(node("x", "input"), node("y", "mul", ["x", "x"]))
    assert np.isposinf(evaluate(g, {"x": np.full((2, 3), 3e38, np.float32)})["y"]).all()


def test_all_wrong_inputs_are_listed() -> None:
    indices = TensorType("i32", (4,))
    g = graph(
        node("image", "input"), node("ids", "input", type_=indices), node("c", "input"), node("d", "input"), node("y", "add", ["c", "d"])
    )
    given = {"imaeg": X, "ids": np.zeros(4, np.int64), "c": X.T, "d": X.astype(np.float64)[0]}
    with pytest.raises(InputError) as caught:
        evaluate(g, given)
    found = caught.value.diagnostics
    assert [d.code for d in found] == ["E0450", "E0433", "E0451", "E0451", "E0433"]
    assert found[0].help == ("did you mean imaeg?",)
    assert "f32[2, 3]" in found[0].message
    assert "i32[4], and its data type is int64" in found[1].message
    assert "has the shape [3, 2]" in found[2].message


def test_unbound_weights_are_listed() -> None:
    g = graph(*(node(name, "weight", (), WeightAttributes(name)) for name in "ab"), node("y", "add", ["a", "b"]))
    with pytest.raises(InputError) as caught:
        evaluate(g, {})
    assert [d.code for d in caught.value.diagnostics] == ["E0453", "E0453"]
    assert "write a constant in its place" in caught.value.diagnostics[0].help[0]


def test_a_value_past_the_limit_is_refused_before_it_is_made() -> None:
    shape = (2**31 - 1, 2**20)
    with pytest.raises(LimitError) as caught:
        evaluate(graph(node("z", "zeros", (), ShapeAttributes(shape), f32(*shape))), {})
    assert caught.value.diagnostics[0].code == "E0640"


def test_want_of_memory_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(*_: object) -> Array:
        raise MemoryError

    monkeypatch.setattr("tpucc.ops.evaluate.OPS", {"relu": replace(OPS["relu"], reference=hungry)})
    with pytest.raises(LimitError) as caught:
        evaluate(graph(node("x", "input"), node("y", "relu", ["x"])), {"x": X})
    assert caught.value.diagnostics[0].code == "E0640"


def test_unknown_operators_are_errors() -> None:
    with pytest.raises(ProgramError) as caught:
        evaluate(graph(node("x", "input"), node("y", "frobnicate", ["x"])), {"x": X})
    assert caught.value.diagnostics[0].code == "E0780"


def test_a_good_graph_passes() -> None:
    verify_operators(dense())
    ranged = replace(dense()["y"], type=f32(2, 2).with_range(Range(-1.0, 1.0)))
    verify_operators(dense().with_nodes(ranged if at.name == "y" else at for at in dense()))
    verify_operators(graph(node("x", "input"), node("f", "fc", ["x"], WeightAttributes("anything"))), {"fc": 1})


WRONG: list[tuple[Node, str, str]] = [
    (node("y", "matmull", ["x", "x"]), "E0780", "there is no operator matmull"),
    (node("y", "relu", ["x", "x"]), "E0781", "relu can't have 2 operands"),
    (node("y", "concat", []), "E0781", "concat can't have 0 operands"),
    (node("y", "input", ["x"]), "E0781", "input can't have 1 operands"),
    (node("y", "softmax", ["x"]), "E0782", "SoftmaxAttributes, not NoAttributes"),
    (node("y", "relu", ["x"], type_=f32(3, 2)), "E0783", "f32[3, 2], and the rule of relu gives f32[2, 3]"),
    (node("y", "argmax", ["x"], OPS["argmax"].examples[0].attributes, f32(2)), "E0783", "gives i32[2]"),
    (node("y", "matmul", ["x", "x"]), "E0301", "the last size of x must be the first of x"),
    (node("y", "softmax", ["x"], SoftmaxAttributes(5)), "E0304", "x has axes 0 to 1"),
    (node("y", "input", type_=f32(0, 3)), "E0308", "found 0"),
]


@each(WRONG)
def test_a_wrong_node_is_named(wrong: Node, code: str, words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        verify_operators(graph(node("x", "input"), wrong))
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.message.startswith("y: ")
    assert words in " | ".join((found.message, *found.help))
    assert found.span == ORIGIN.spans[0]
    assert "y: " in found.render(Source("m.tpu", "\n\n        abcdef\n"))


def test_all_wrong_nodes_are_listed() -> None:
    with pytest.raises(ProgramError) as caught:
        verify_operators(graph(node("x", "input"), node("y", "relu6", ["x"], type_=f32(1)), node("z", "nothing", ["y"])))
    assert [d.code for d in caught.value.diagnostics] == ["E0783", "E0780"]
    assert caught.value.diagnostics[0].message.startswith("y: ")


def test_large_graphs_take_linear_time() -> None:
    nodes = [node("n0", "input"), *(node(f"n{i}", "relu", [f"n{i - 1}"]) for i in range(1, 20_000))]
    g = graph(*nodes)
    verify_operators(g)
    assert list(evaluate(g, {"n0": X})) == ["n19999"]
