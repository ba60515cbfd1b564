"""The batch divided among cores: the layer graph of the whole batch becomes that of one core's part.

It comes last. Every pass before it, calibration and quantisation among them, has seen the whole batch, so that the layers of N cores are
those of one in all but their leading sizes, and give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from tpucc.diagnostics import CompileError, Diagnostic, Label, UsageError, counted
from tpucc.ir import Graph, Node, TensorType
from tpucc.ir.dataflow import constant_values, needed_values
from tpucc.layers.kinds import LAYERS, Conv, Fc, Layer, Move, Pool, Vector, VectorFunction, is_written
from tpucc.numerics import AnyArray
from tpucc.ops import facts_of
from tpucc.ops.batch import (
    SUMMED,
    Averaged,
    Batch,
    BatchRule,
    Case,
    Division,
    MixedError,
    aligned,
    images,
    joined,
    padded,
    part_of,
    product,
)
from tpucc.ops.names import constant
from tpucc.passes.base import Context, graph_pass
from tpucc.passes.dead_code import live
from tpucc.passes.rewriter import Rewriter, as_constant, held_array

Divisions = Mapping[str, Division]
UNDIVIDED = "the batch can't be divided among"


@graph_pass("divide-batch", "divides the batch among cores, which all run the same program", level=0)
def divide_batch(graph: Graph, context: Context) -> Graph:
    """Gives every value one core's part of the batch; a graph for one core is left as it is.

    Raises `UsageError` E0508, `CompileError` E0830 and E0831: see `divisions`.
    """
    return graph if context.cores == 1 else divided(graph, context.cores, "divide-batch")


def divided(graph: Graph, parts: int, by: str, *, among: str = "", means: bool = False) -> Graph:
    """The graph of one of `parts` equal parts of the batch, made by the pass `by`. The outputs are divided, or else `means` over the batch.
    What no output needs is left out. `among` and the errors are as in `divisions`."""
    graph = live(graph)
    return _Parts(graph, Fraction(1, parts), by, divisions(graph, parts, among=among, means=means)).rewrite(_Parts.divide)


def joined_batches(graph: Graph, count: int, by: str) -> Graph:
    """The graph of `count` batches in one, the items of each behind those of the one before, made by the pass `by`.

    Outputs may have their items along any axis. What no output needs is left out. Raises `CompileError` E0830 and E0831 as `divisions`.
    """
    graph, share = live(graph), Fraction(count)
    found, errors = _divisions(graph, batch_of(graph), share, counted(count, "batch", "batches"))
    if errors:
        raise CompileError(errors)
    return _Parts(graph, share, by, found).rewrite(_Parts.divide)


class _Parts(Rewriter):
    """The graph of a part of the batch, or of several batches, in the making."""

    def __init__(self, graph: Graph, share: Fraction, by: str, divisions: Divisions) -> None:
        super().__init__(graph, by)
        self._share = share
        self._size = batch_of(graph)
        self._divisions = divisions

    def divide(self, node: Node) -> bool:
        """Puts a node for the batch that is wanted, if it has the batch."""
        division = self._divisions.get(node.name)
        if division is None:
            return False
        type_ = node.type if isinstance(division.result, Averaged) else self._part(node.type, division.result)
        operands = list(node.operands)
        for index, batch in division.constants.items():
            operands[index] = self._constant(operands[index], batch)
        self.put(replace(node, operands=tuple(operands), type=type_, attributes=division.attributes or node.attributes))
        return True

    def _part(self, type_: TensorType, batch: Batch) -> TensorType:
        return replace(type_, shape=part_of(type_.shape, batch, self._share))

    def _constant(self, name: str, batch: Batch) -> str:
        """A value without inputs, as it goes with the batch that is wanted."""

        def make() -> str:
            node, type_ = self.graph[name], self._part(self.graph[name].type, batch)
            if (array := held_array(node)) is not None:
                part = constant_part(array, batch, self._size, self._share)
                assert part is not None
                return self.make(as_constant(replace(node, type=type_), part)).name
            division = _of_constants(self.graph, node, batch, self._size, self._share)
            assert division is not None
            operands = list(node.operands)
            for index, place in division.constants.items():
                operands[index] = self._constant(operands[index], place)
            attributes = division.attributes or node.attributes
            return self.make(replace(node, operands=tuple(operands), type=type_, attributes=attributes)).name

        return self.once((name, batch), make)


def divisions(graph: Graph, cores: int, *, among: str = "", means: bool = False) -> Divisions:
    """For each node that depends on an input and leads to an output how its batch is divided, in the order of the graph.

    The graph is one of operators or of layers. With `means`, a value may be the mean over the batch, and every output must be one: cores
    can take the mean of their means. Messages say what the batch is divided `among`, if it isn't just cores. Raises `UsageError` E0508
    for a batch that isn't divisible, `CompileError` E0830 when the inputs have no batch in common, and E0831 with each operator that mixes
    its items.
    """
    size, among = batch_of(graph), among or counted(cores, "core")
    if size % cores:
        raise UsageError(_indivisible(graph, size, cores, among))
    found, errors = _divisions(graph, size, Fraction(1, cores), among, means)
    if errors := errors or list(_means(graph, found, among) if means else _outputs(graph, found, size, among)):
        raise CompileError(tuple({(error.span or error.message): error for error in reversed(errors)}.values())[::-1])
    return found


def _divisions(graph: Graph, size: int, share: Fraction, among: str, means: bool = False) -> tuple[Divisions, Sequence[Diagnostic]]:
    """What `divisions` says for any `share` of the batch, and an error for each operator that mixes items; the outputs aren't looked at."""
    left = needed_values(graph) - constant_values(graph)
    found = {node.name: Division(Batch(0)) for node in graph.inputs}
    errors: list[Diagnostic] = []
    for node in graph:
        refused = any(name in left and name not in found for name in node.operands)
        if node.name in found or node.name not in left or refused:
            continue
        operands = graph.operands(node)
        batches = [found[operand.name].result if operand.name in found else None for operand in operands]
        try:
            found[node.name] = _divided(graph, Case(node, operands, batches, size, share), means)
        except MixedError as error:
            errors.append(_mixed(node, str(error), among, means))
    return found, errors


def batch_of(graph: Graph) -> int:
    """The first size that all inputs share. Raises `CompileError` E0830."""
    sizes = {node.type.shape[0] if node.type.shape else 0 for node in graph.inputs}
    if len(sizes) == 1 and 0 not in sizes:
        return sizes.pop()
    if not graph.inputs:
        raise CompileError(Diagnostic("E0830", "the model has no inputs, so there is no batch to divide among cores"))
    labels = tuple(Label(span, f"{node.name} is {node.type.brief}") for node in graph.inputs for span in node.origin.spans[:1])
    text = "the inputs have no batch in common that could be divided among cores"
    raise CompileError(Diagnostic("E0830", text, labels, ("the batch is the first size, the same one in every input",)))


def constant_part(value: AnyArray, batch: Batch, size: int, share: Fraction) -> AnyArray | None:
    """A constant that goes with a batch of `size` items, for a `share` of it: one of equal parts, None when they differ; or repeated, for
    several batches."""
    before, after = value.shape[: batch.axis], value.shape[batch.axis + 1 :]
    parts = value.reshape(*before, -1, share.denominator, size // share.denominator * batch.inner, *after)
    first = parts.take([0], axis=batch.axis + 1)
    if not (parts == first).all():
        return None
    return first.repeat(share.numerator, axis=batch.axis + 1).reshape(part_of(value.shape, batch, share))


def rule_of(op: str) -> BatchRule | None:
    """The rule of an operator or layer; None for what has no operands, or is neither."""
    return BATCHES[LAYERS[op]] if op in LAYERS else facts_of(op).batch


def _divided(graph: Graph, case: Case, means: bool) -> Division:
    if (rule := rule_of(case.node.op)) is None:
        raise MixedError(f"nothing is known of how {case.node.op} treats a batch")
    division = rule(case)
    if isinstance(division.result, Averaged) and not means:
        raise MixedError(f"{case.node.op} averages over the batch")
    for index, batch in division.constants.items():
        operand = case.operands[index]
        known = means or constant.made(operand)  # while compiling, some aren't computed yet
        if known and not _same_for_all(graph, operand, batch, case.size, case.share):
            raise MixedError(f"the constant {operand.name} differs from item to item, and all cores run the same program")
    return division


def _same_for_all(graph: Graph, node: Node, batch: Batch, size: int, share: Fraction) -> bool:
    """Whether a value without inputs can be divided: each core's part is the same."""
    if (array := held_array(node)) is not None:
        return constant_part(array, batch, size, share) is not None
    return _of_constants(graph, node, batch, size, share) is not None


def _of_constants(graph: Graph, node: Node, batch: Batch, size: int, share: Fraction) -> Division | None:
    """How an operator on values without inputs is divided, so that its result has the batch there; None where it can't be.

    `zeros([batch, units]) @ w` is one: where w is trained, it isn't known when compiling, but all its rows are equal.
    """
    if (rule := rule_of(node.op)) is None:
        return None
    operands = graph.operands(node)
    for index, operand in enumerate(operands):
        for axis in range(operand.type.rank):
            given = Batch(axis, batch.inner)
            case = Case(node, operands, [given if place == index else None for place in range(len(operands))], size, share)
            try:
                division = rule(case)
            except MixedError:
                continue
            constants = {**division.constants, index: given}
            if division.result == batch and all(_same_for_all(graph, operands[at], b, size, share) for at, b in constants.items()):
                return replace(division, constants=constants)
    return None


def _outputs(graph: Graph, found: Divisions, size: int, among: str) -> Iterator[Diagnostic]:
    """Outputs are joined along their first axis."""
    for output in graph.outputs:
        node = graph[output.node]
        if node.name not in found:
            yield _mixed(node, f"the output {output.name} depends on no input", among)
        elif (batch := found[node.name].batch) != Batch(0, node.type.shape[0] // size):
            apart = f"rows 0 and {size * batch.inner} belong to the same item, and those between to others"
            why = f"it is not the first axis but axis {batch.axis}" if batch.axis else apart
            yield _mixed(node, f"in the output {output.name}, {node.type.brief}, {why}", among)


def _means(graph: Graph, found: Divisions, among: str) -> Iterator[Diagnostic]:
    for output in graph.outputs:
        node = graph[output.node]
        if node.name not in found:
            yield _mixed(node, f"the {output.name} depends on no input", among, means=True)
        elif not isinstance(found[node.name].result, Averaged):
            yield _mixed(node, f"the {output.name} isn't a mean over the batch", among, means=True)


def _indivisible(graph: Graph, size: int, cores: int, among: str) -> Diagnostic:
    below = max(size // cores, 1) * cores
    near = f"batch {size:,} can't be divided among {among}: {below:,} and {below + cores:,} can"
    labels = tuple(label for node in graph.inputs[:1] for label in node.origin.labels())
    return Diagnostic("E0508", f"batch {size:,} is not divisible by {among}", labels, (near,))


def _mixed(node: Node, why: str, among: str, means: bool = False) -> Diagnostic:
    mend = "every core runs the same program on its own items of the batch; cores don't talk to each other"
    if means:
        mend = "a loss that is divided is a mean over the examples, as cross_entropy and mean(…) are, or a sum of such means and of weights"
    return Diagnostic("E0831", f"{UNDIVIDED} {among}: {why}", node.origin.trail(), (mend,))


# Where the batch lies in the result of each layer: the rules of `tpucc.ops.batch`, by kind of layer


def _fc(case: Case) -> Division:
    """Several sources, whose products add up, go together row by row; with weights that the host writes, items of both sides."""
    if is_written(case.operands[case.attributes.sources]):
        return product(case)
    division = aligned(case, range(case.attributes.sources))
    if division.batch.axis == case.node.type.rank - 1:
        raise MixedError(SUMMED)
    return division


def _vector(case: Case) -> Division:
    """One value or two, then perhaps a table."""
    return aligned(case, range(1 if case.attributes.function == VectorFunction.TABLE else 2))


def _move(case: Case) -> Division:
    layer = case.attributes
    assert isinstance(layer, Move)
    return padded(case, layer.pads) if layer.pads else joined(case, layer.axis)


BATCHES: Mapping[type[Layer], BatchRule] = MappingProxyType({Fc: _fc, Conv: images, Pool: images, Vector: _vector, Move: _move})
