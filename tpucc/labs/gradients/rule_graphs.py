"""What a submission's rule makes: asked for with shapes alone, read as text, verified, and computed by the grader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tpucc.diagnostics import Error
from tpucc.ir import Graph, TensorType, f32
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph
from tpucc.labs.lab import TROUBLES, Submission, Wrong
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.numerics import AnyArray, Float64
from tpucc.ops import OPS
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.gradient import Backward
from tpucc.passes.pipeline import verify_stage
from tpucc.plugins.failures import Failed
from tpucc.training.passes.build import Apart

ALLOWED = (
    *("add", "sub", "mul", "div", "matmul", "greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "where"),
    *("sum", "mean", "reshape", "transpose", "broadcast", "zeros", "ones"),
)
"""The operators that a rule may use. None computes a function with a curve, so that none can be differentiated by differences."""
MOST, LARGEST, RANK, LONGEST = 40, 100_000, 10, 50_000
"""Operators and constants of a gradient, elements and axes of a value, and characters of a gradient's text."""
COLUMNS = 78
POOLS_OWN = ("stride", "padding", "ceil")
"""Attributes of a pool that no case of this lab changes."""
Shape = tuple[int, ...]


def given(op: str, attributes: Any, shapes: Sequence[Shape]) -> Backward:
    """What a rule is called with: values without numbers."""
    apart = Apart()
    operands = tuple(apart.input(operand.name, f32(*shape)) for operand, shape in zip(OPS[op].operands, shapes, strict=True))
    type_ = OPS[op].infer(attributes, [operand.type for operand in operands])
    return Backward(attributes, operands, apart.input("y", type_), apart.input("dy", type_), (True,) * len(operands))


def call(op: str, attributes: Any, shapes: Sequence[Shape]) -> str:
    """A case as a call: `softmax(x, axis=-1) with x [3, 5]`."""
    names = [operand.name for operand in OPS[op].operands]
    given = (f"{name}={getattr(attributes, name)}" for name in attributes.__dataclass_fields__ if name not in POOLS_OWN)
    return (
        f"{op}({', '.join((*names, *given))}) with {', '.join(f'{name} {list(shape)}' for name, shape in zip(names, shapes, strict=True))}"
    )


def ask(function: str, op: str, attributes: Any, shapes: Sequence[Shape], submission: Submission) -> list[Graph]:
    """The graph of each operand's gradient, valid and of that operand's shape. Raises `Wrong`."""
    g = given(op, attributes, shapes)
    inputs = {value.name: value.type for value in (*g.operands, g.result, g.dy)}
    try:
        texts = submission.call(function, g)
        if not isinstance(texts, list):
            raise Failed("result", "returns no list; it gives one gradient for each operand, as in `return [dx]`")
        if len(texts) != len(shapes):
            raise Failed("result", f"returns a list of {len(texts)}; it gives one gradient for each operand, {len(shapes)} here")
        return [_read(text, f"d{operand.name}", operand.type, inputs) for text, operand in zip(texts, g.operands, strict=True)]
    except Failed as failure:
        trouble = TROUBLES["result"]
        raise Wrong(f"{function}: {failure.words}", given=call(op, attributes, shapes), trouble=trouble) from None


def _read(text: object, name: str, type_: TensorType, inputs: Mapping[str, TensorType]) -> Graph:
    """A gradient's graph. Raises `Failed` where the text is none that a rule may make."""
    if not isinstance(text, str) or not text.startswith("graph "):
        raise Failed("result", f"{name} is {str(text)[:60]}, and should be a value that operators gave")
    if len(text) > LONGEST:
        raise Failed("result", f"{name} is a huge graph")
    try:
        graph = parse_graph(text, "rule.graph", ATTRIBUTES, most=LARGEST)
        if problem := _forbidden(graph, inputs):
            raise Failed("result", f"{name} {problem}")
        verify_stage(graph)
    except Error as error:
        first = error.diagnostics[0]
        raise Failed("wrong", f"{name} is computed by nodes that are not valid: {first.code}: {first.message}") from None
    found = graph[graph.outputs[0].node].type
    if found != type_:
        raise Failed("wrong", f"{name} is {found}, and a gradient has its operand's shape: {type_}")
    return graph


def _forbidden(graph: Graph, inputs: Mapping[str, TensorType]) -> str:
    """What a rule may not do, of the first node that does it; nothing when all is well."""
    if len(graph.outputs) != 1:
        return "has several results"
    if sum(not node.is_input for node in graph) > MOST:
        return f"takes more than {MOST} operators and constants"
    for node in graph:
        if node.is_input and inputs.get(node.name) != node.type:
            return f"reads {node.name}, which the rule was not given"
        if not node.is_input and node.op not in (*ALLOWED, "constant"):
            return f"uses {node.op}, which a rule may not; these may be used: {', '.join(ALLOWED)}"
        if node.type != f32(*node.type.shape):
            return f"has a value that is not plain: {node.name} is {node.type}"
        if node.type.size > LARGEST or node.type.rank > RANK:
            return f"has a value of {node.type.size:,} elements and {node.type.rank} axes: {node.name}"
    return ""


def computed(graph: Graph, inputs: Mapping[str, AnyArray], dtype: Any = np.float64) -> AnyArray:
    """A gradient's value, computed in one type of numbers."""
    values: dict[str, AnyArray] = {}
    with np.errstate(all="ignore"):
        for node in graph:
            if node.is_input:
                values[node.name] = np.asarray(inputs[node.name], dtype)
            elif isinstance(node.attributes, ConstantAttributes):
                values[node.name] = np.asarray(node.attributes.value.data, dtype)
            else:
                found = OPS[node.op].reference(node.attributes, [values[name] for name in node.operands])
                values[node.name] = np.asarray(found, dtype)
    return values[graph.outputs[0].node]


def inputs_of(op: str, operands: Sequence[AnyArray], result: AnyArray, dy: AnyArray) -> dict[str, Float64]:
    """The values of a rule's inputs by their names."""
    return dict(zip((*(operand.name for operand in OPS[op].operands), "y", "dy"), (*operands, result, dy), strict=True))


def listing(graphs: Sequence[Graph], names: Sequence[str]) -> str:
    """The nodes of the operands' gradients as lines of characters."""
    lines = (line for graph, name in zip(graphs, names, strict=True) for line in _lines(graph, name))
    return "\n".join(line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…" for line in lines)


def _lines(graph: Graph, name: str) -> Iterator[str]:
    text = print_graph(graph, origins=False, with_data=True)
    yield from (line for line in text.splitlines() if line and not line.startswith(("graph ", "return ")))
    yield f"d{name} = {graph.outputs[0].node}"
