"""The batch divided among cores: the layer graph of the whole batch becomes that of one core's part.

It comes last. Every pass before it, calibration and quantisation among them, has seen the whole batch, so that the layers of N cores are
those of one in all but their leading sizes, and give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph, Node
from tpucc.ir.types import TensorType
from tpucc.ops.batch import Batch
from tpucc.ops.constant import ConstantAttributes
from tpucc.passes.base import Context
from tpucc.passes.cores.division import Divisions, batch_of, divisions, one_part
from tpucc.passes.rewriter import Rewriter


@dataclass(frozen=True)
class DivideBatch:
    """Gives every value one core's part of the batch; a graph for one core is left as it is."""

    name: ClassVar[str] = "divide-batch"
    summary: ClassVar[str] = "divides the batch among cores, which all run the same program"
    level: ClassVar[int] = 0

    def run(self, graph: Graph, context: Context) -> Graph:
        """Raises `UsageError` E0508, `CompileError` E0830 and E0831: see `divisions`."""
        if context.cores == 1:
            return graph
        return _Parts(graph, context.cores, self.name).rewrite(_Parts.divide)


class _Parts(Rewriter):
    """The graph of one core in the making."""

    def __init__(self, graph: Graph, cores: int, by: str) -> None:
        super().__init__(graph, by)
        self._cores = cores
        self._size = batch_of(graph)
        self._divisions: Divisions = divisions(graph, cores)
        self._divided: dict[tuple[str, Batch], str] = {}

    def divide(self, node: Node) -> bool:
        """Puts one core's part of a node, if its batch is divided."""
        division = self._divisions.get(node.name)
        if division is None:
            return False
        type_ = self._part(node.type, division.result)
        operands = list(node.operands)
        for index, batch in division.constants.items():
            operands[index] = self._constant(operands[index], batch)
        self.put(replace(node, operands=tuple(operands), type=type_, attributes=division.attributes or node.attributes))
        return True

    def _part(self, type_: TensorType, batch: Batch) -> TensorType:
        shape = type_.shape
        return replace(type_, shape=(*shape[: batch.axis], shape[batch.axis] // self._cores, *shape[batch.axis + 1 :]))

    def _constant(self, name: str, batch: Batch) -> str:
        """The part of a constant that goes with one core's items."""
        if (name, batch) not in self._divided:
            node = self.graph[name]
            assert isinstance(node.attributes, ConstantAttributes)
            part = one_part(node.attributes.value.data, batch, self._size, self._cores)
            assert part is not None
            made = self.make(name, "constant", (), ConstantAttributes(Constant(part)), self._part(node.type, batch), node.origin)
            self._divided[name, batch] = made.name
        return self._divided[name, batch]
