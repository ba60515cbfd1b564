"""The float reference of a whole graph: every node in order, each by its operator, in the portable arithmetic (`tpucc.floating`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError, LimitError, ProgramError, did_you_mean
from tpucc.floating.arithmetic import PORTABLE
from tpucc.ir import Attributes, Graph, Node
from tpucc.ir.dtypes import OF_NUMPY
from tpucc.ops import OPS, facts_of, legalisation_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.dequantize import DequantizeAttributes, explicit
from tpucc.ops.fused import defined_alone
from tpucc.ops.opdef import Array, Arrays, Matrix, Types

Extra = Mapping[str, Callable[[Node, Arrays], Array]]
"""Operators of other packages by name: functions of the node and its operands' arrays."""

NO_EXTRA: Extra = {}
MAX_BYTES = 2**31
"""The largest single value that is computed: several fit the memory of a laptop. Compiling and `Runtime.load` refuse larger ones."""


def evaluate(
    graph: Graph,
    inputs: Mapping[str, Array],
    extra: Extra = NO_EXTRA,
    keep: Collection[str] | None = None,
    watch: Callable[[Node, Array], None] | None = None,
) -> dict[str, Array]:
    """The values of the outputs and of the nodes in `keep`, by node name.

    `inputs` has an array for each `input` node, under its name; others are ignored. `extra` goes first, so that it can also replace an
    operator. `watch` sees each value as it is computed; one is freed after its last use unless it is kept. Arithmetic is IEEE 754's: what
    overflows becomes infinite, without a warning. Raises `InputError` for inputs that are missing or don't fit (all at once), for weights
    that nobody bound and for embedding indices out of range, `LimitError` for a value past `MAX_BYTES` or one that the memory can't hold,
    `ProgramError` for an unknown operator.
    """
    _require_ready(graph, inputs, extra)
    kept = graph.output_nodes.union(keep or ())
    values: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        for node, done in zip(graph.nodes, _freed(graph, kept), strict=True):
            values[node.name] = value = _value(graph, node, values, inputs, extra)
            if watch is not None:
                watch(node, value)
            for name in done:
                del values[name]
    return {name: value for name, value in values.items() if name in kept}


def compute(node: Node, types: Types, operands: Arrays) -> Array:
    """The value of one node of a computing operator, from its operands' types and arrays: the same bits on every processor.

    Raises `ProgramError` for an unknown operator.
    """
    if (operator := OPS.get(node.op)) is None:
        raise ProgramError(Diagnostic("E0780", f"{node.name}: there is no operator {node.op}", node.origin.labels()))
    return defined_alone(operator, _attributes(node, types), operands, PORTABLE)


def _attributes(node: Node, types: Types) -> Attributes:
    if isinstance(node.attributes, DequantizeAttributes):
        return explicit(node.attributes, types[0])
    return node.attributes


def _value(graph: Graph, node: Node, values: Mapping[str, Array], inputs: Mapping[str, Array], extra: Extra) -> Array:
    operands = [values[name] for name in node.operands]
    if node.op in extra:
        return extra[node.op](node, operands)
    if node.is_input:
        return inputs[node.name]
    if not isinstance(node.attributes, ConstantAttributes):  # which is in memory already
        require_computable(node)
    try:
        return compute(node, [graph[name].type for name in node.operands], operands)
    except MemoryError:
        raise LimitError(_too_large(node)) from None


def require_computable(*nodes: Node) -> None:
    """Raises `LimitError` E0640 for the first value past `MAX_BYTES`; of the types alone."""
    for node in nodes:
        if node.type.size * node.type.numpy.itemsize > MAX_BYTES:
            raise LimitError(_too_large(node))


def _too_large(node: Node) -> Diagnostic:
    needed = node.type.size * node.type.numpy.itemsize
    message = f"{node.name} is too large to compute: {node.type.brief} takes {needed:,} bytes, and a value has at most {MAX_BYTES:,}"
    mend = "a smaller batch or a smaller size makes it fit; tpucc run takes any number of rows, a batch at a time"
    return Diagnostic("E0640", message, node.origin.labels(), (mend,))


def _freed(graph: Graph, kept: Collection[str]) -> list[list[str]]:
    """For each node the values that nobody needs once it is computed: those that it reads last, and its own where none reads it."""
    last: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        last.update(dict.fromkeys((node.name, *node.operands), index))
    freed: list[list[str]] = [[] for _ in graph.nodes]
    for name, index in last.items():
        if name not in kept:
            freed[index].append(name)
    return freed


def _require_ready(graph: Graph, inputs: Mapping[str, Array], extra: Extra) -> None:
    found = [d for node in graph.inputs for d in _input_faults(node, inputs)]
    unbound = [node for node in graph.nodes if node.op == "weight" and "weight" not in extra]
    mend = "compile the source, which reads or draws its values, or write a constant in its place"
    found += [Diagnostic("E0453", f"the weight {node.name} has no value", node.origin.labels(), (mend,)) for node in unbound]
    if found:
        raise InputError(found)


def _input_faults(node: Node, inputs: Mapping[str, Array]) -> Iterable[Diagnostic]:
    """The error of one input, if there is one."""
    if node.name not in inputs:
        near = did_you_mean(node.name, inputs)
        yield Diagnostic("E0450", f"the input {node.name} is missing: {node.type.brief}", node.origin.labels(), (near,))
        return
    given = inputs[node.name]
    if given.shape != node.type.shape:
        message = f"the input {node.name} must be {node.type.brief}, and has the shape {list(given.shape)}"
        yield Diagnostic("E0451", message, node.origin.labels())
    if given.dtype != node.type.numpy:
        found = OF_NUMPY[given.dtype].name if given.dtype in OF_NUMPY else given.dtype
        message = f"the input {node.name} must be {node.type.brief}, and its data type is {found}"
        yield Diagnostic("E0433", message, node.origin.labels())


# The size of products, wherever they are computed.


def multiply_accumulates(graph: Graph) -> int:
    """How many products of two numbers the matrix products and convolutions of an operator graph, or of a part of it, add up."""
    products = (node for node in graph if isinstance(legalisation_of(node.op), Matrix))
    return sum(node.type.size * facts_of(node.op).terms([operand.type.shape for operand in graph.operands(node)]) for node in products)
