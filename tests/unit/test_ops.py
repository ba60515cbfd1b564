"""What holds for every operator, over the examples that each brings: the rule and the reference agree, in type and without warnings."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpucc.ops
from tests.support.cases import each, titled
from tpucc.diagnostics import Origin
from tpucc.ir import Graph, NoAttributes, Node, Output, Range, TensorType
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph
from tpucc.layers.kinds import FUNCTIONS_OF_TWO, VectorFunction
from tpucc.ops import INTERNAL, OPS
from tpucc.ops.arithmetic import ArithmeticAttributes, fusible
from tpucc.ops.families import function_of_one_value, function_of_two_values, leaf
from tpucc.ops.fused import Fused, activation_of
from tpucc.ops.opdef import Arithmetic, Array, Clamp, Example, OpDef, RuleError, Table
from tpucc.ops.reductions import reduction
from tpucc.ops.verify import verify_operators

CASES = {f"{name}: {example.title}": (op, example) for name, op in OPS.items() for example in op.examples}
TABLE = (Path(__file__).parents[2] / "docs" / "language.md").read_text("utf-8").partition("\n## Operators\n")[2].partition("\n## ")[0]
LANGUAGE = {name for row in re.findall(r"^\| (`.*?) \|", TABLE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
"""The operators that the page of the language names."""


EXTREME = (0.0, -0.0, 1e-30, 3.4e38, -3.4e38)


def drawn(types: tuple[TensorType, ...], seed: int = 0) -> list[Array]:
    """Arrays of these types: in their range, else normal, positive for a batch norm's sake where one-dimensional, small indices."""
    generator = np.random.default_rng(seed)
    made: list[Array] = []
    for type_ in types:
        if type_.range is not None:
            made.append(np.asarray(generator.uniform(type_.range.low, type_.range.high, type_.shape), np.float32))
        elif type_.dtype == "f32":
            values = generator.standard_normal(type_.shape, np.float32) * np.float32(3)
            made.append(np.asarray(np.abs(values) if type_.rank == 1 else values, np.float32))
        else:
            made.append(np.asarray(generator.integers(0, 7, type_.shape), type_.numpy))
    return made


def test_the_operators_of_the_language_are_there() -> None:
    """An operator that is added is one file: the reference has its page, and that of the language needs none."""
    assert len(LANGUAGE) > 60
    assert OPS.keys() - INTERNAL >= LANGUAGE


@each(CASES)
def test_rule_and_reference_agree(op: OpDef[Any], example: Example[Any]) -> None:
    inferred = op.infer(example.attributes, example.operands)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        result = op.reference(example.attributes, drawn(example.operands))
    assert isinstance(result, np.ndarray)
    assert (result.shape, result.dtype) == (inferred.shape, inferred.numpy)


@each(CASES)
def test_references_change_no_operand(op: OpDef[Any], example: Example[Any]) -> None:
    operands = drawn(example.operands)
    for operand in operands:
        operand.setflags(write=False)
    assert np.array_equal(op.reference(example.attributes, operands), op.reference(example.attributes, operands))


@each(CASES)
def test_rules_do_not_depend_on_ranges(op: OpDef[Any], example: Example[Any]) -> None:
    ranged = [type_.with_range(Range(-1.0, 1.0)) for type_ in example.operands]
    assert op.infer(example.attributes, ranged).plain() == op.infer(example.attributes, example.operands).plain()


@each(CASES)
def test_nodes_have_a_text_form(op: OpDef[Any], example: Example[Any]) -> None:
    origin = Origin(made_by="test")
    operands = [Node(f"x{i}", "input", (), NoAttributes(), type_, origin) for i, type_ in enumerate(example.operands)]
    if op.declared:
        node = Node("y", op.name, (), example.attributes, example.operands[0], origin)
    else:
        node = Node(
            "y", op.name, tuple(x.name for x in operands), example.attributes, op.infer(example.attributes, example.operands), origin
        )
    graph = Graph("g", (*operands, node), (Output("y", "y"),))
    verify_operators(graph)
    again = parse_graph(print_graph(graph), "g.graph", {name: known.attributes for name, known in OPS.items()})
    assert again["y"] == node


@each(titled(OPS))
def test_definitions_are_complete(op: OpDef[Any]) -> None:
    titles = [example.title for example in op.examples]
    assert any("one whole tile" in title for title in titles)
    assert any("ragged" in title for title in titles)
    assert len(set(titles)) == len(titles)
    assert is_dataclass(op.attributes)
    assert all(op.takes(len(example.operands)) for example in op.examples if not op.declared)
    assert op.documentation.endswith((".", ")"))
    assert not op.summary.endswith(".")


@each(titled(OPS))
def test_attributes_are_frozen_and_hashable(op: OpDef[Any]) -> None:
    attributes = op.examples[0].attributes
    assert hash(attributes) == hash(replace(attributes))
    for field in fields(attributes):
        with pytest.raises(FrozenInstanceError):
            setattr(attributes, field.name, None)


@each({f"{name} {index}": (name, index) for name, op in OPS.items() if isinstance(op.legalisation, Table) for index in (0, 1)})
def test_tables_are_the_reference_in_double_precision(name: str, index: int) -> None:
    op = OPS[name]
    attributes = op.examples[index].attributes
    x = np.linspace(-20 if op.examples[0].operands[0].range is None else 0.01, 20, 4001)
    assert isinstance(op.legalisation, Table)
    table = op.legalisation.function(attributes, x)
    assert table.dtype == np.float64
    single = op.reference(attributes, [x.astype(np.float32)])
    assert np.allclose(single, table, rtol=2e-6, atol=2e-6)


@each({f"{name} of {x}": (name, x) for name, op in OPS.items() if isinstance(op.legalisation, Table | Clamp) for x in EXTREME})
def test_activations_take_extreme_scalars_without_warnings(name: str, value: float) -> None:
    op = OPS[name]
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        result = op.reference(op.examples[0].attributes, [np.asarray(value, np.float32)])
    assert result.shape == ()
    assert result.dtype == np.float32
    with np.errstate(all="ignore"):
        exact = op.legalisation.function(op.examples[0].attributes, np.asarray(value)) if isinstance(op.legalisation, Table) else 0.0
        of_positive_values = op.examples[0].operands[0].range is not None
        assert np.isfinite(result) == np.isfinite(np.float32(exact)) or (of_positive_values and value <= 0)


def test_clamps_are_the_reference() -> None:
    x = np.linspace(-9, 9, 1001, dtype=np.float32)
    clamps = [(op, op.legalisation) for op in OPS.values() if isinstance(op.legalisation, Clamp)]
    assert {op.name for op, _ in clamps} >= {"relu", "relu6", "clip"}
    for op, clamp in clamps:
        attributes = op.examples[0].attributes
        assert np.array_equal(op.reference(attributes, [x]), np.clip(x, *clamp.bounds(attributes)))


def test_arithmetic_names_are_the_vector_units() -> None:
    found = {name: op.legalisation.function for name, op in OPS.items() if isinstance(op.legalisation, Arithmetic)}
    fused = found.pop("arithmetic")
    units = {name: function(NoAttributes()) for name, function in found.items()}
    assert units.items() >= {"add": "add", "sub": "subtract", "mul": "multiply"}.items()
    assert {of: fused(ArithmeticAttributes(of=of)) for of in fusible()} == units
    assert {VectorFunction(unit) for unit in units.values()} == FUNCTIONS_OF_TWO.keys()


def test_internal_operators_take_in_activations_and_the_language_has_none() -> None:
    fused = {name for name, op in OPS.items() if issubclass(op.attributes, Fused)}
    assert fused == {"linear", "convolution", "transposed_convolution", "arithmetic"}
    assert fused <= set(INTERNAL)


@pytest.mark.parametrize(
    ("name", "base"), [("linear", "matmul"), ("convolution", "conv2d"), ("transposed_convolution", "conv_transpose2d")]
)
def test_a_fused_operator_is_its_parts_one_after_the_other(name: str, base: str) -> None:
    before = OPS[base]
    for example in OPS[name].examples:
        left, right, *bias = drawn(example.operands)
        own = before.attributes(**{field.name: getattr(example.attributes, field.name) for field in fields(before.attributes)})
        expected = before.reference(own, (left, right))
        for each_bias in bias:
            expected = OPS["add"].reference(NoAttributes(), (expected, each_bias))
        if (activation := activation_of(example.attributes)) is not None:
            operator, parameters = activation
            expected = operator.reference(parameters, (expected,))
        assert np.array_equal(OPS[name].reference(example.attributes, (left, right, *bias)), expected, equal_nan=True), example.title


@pytest.mark.parametrize("family", [function_of_one_value, function_of_two_values, leaf, reduction])
def test_a_field_that_neither_family_nor_operator_gives_is_missed(family: Any) -> None:
    with pytest.raises(TypeError, match=r"missing \d+ required .*'summary'"):
        family(name="lacking")


def test_every_code_of_a_rule_is_one_of_theirs() -> None:
    folder = Path(tpucc.ops.__file__).parent
    used = {part[:5] for file in folder.glob("*.py") for part in file.read_text("utf-8").split('RuleError("')[1:]}
    assert used == {f"E03{number:02}" for number in range(1, 16)}


def test_signatures() -> None:
    assert OPS["matmul"].signature == "matmul(a, b)"
    assert OPS["conv2d"].signature == 'conv2d(x, w, stride=1, padding="valid", dilation=1, groups=1)'
    assert OPS["concat"].signature == "concat([tensors, …], axis=-1)"
    assert OPS["full"].signature == "full(shape, value)"
    assert OPS["linear"].signature.startswith("linear(x, w, b?, ")
    assert OPS["convolution"].signature.startswith("convolution(x, w, b?, ")


def test_numbers_of_operands() -> None:
    assert [n for n in range(5) if OPS["linear"].takes(n)] == [2, 3]
    assert [n for n in range(5) if OPS["convolution"].takes(n)] == [2, 3]
    assert [n for n in range(5) if OPS["arithmetic"].takes(n)] == [2]
    assert [n for n in range(5) if OPS["concat"].takes(n)] == [1, 2, 3, 4]
    assert [n for n in range(5) if OPS["zeros"].takes(n)] == [0]


def test_errors_name_the_operands() -> None:
    error = RuleError("E0301", "{0} and {1}", help="not {1} but {0}")
    assert error.named(["x", "w2"]) == ("x and w2", "not w2 but x")
    assert error.named(["{1}", "b"]) == ("{1} and b", "not b but {1}")
