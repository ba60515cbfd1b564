"""The work of the activation unit at the end of a layer: it requantises, clamps, and looks up."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.diagnostics import Diagnostic, ProgramError
from tpucc.ir import Node, Quantisation
from tpucc.layers.kinds import Requantise
from tpucc.layers.parameters import clamp_bounds, function_table
from tpucc.numerics import DeviceInts
from tpucc.ops.fused import Fused, activation_of
from tpucc.ops.opdef import Clamp, Table
from tpucc.passes.layering.graph import LayerGraph


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """Requantises as `to`, clamps to low…high (see `Requantise`), looks up in `table` if there is one."""

    to: Quantisation
    low: int | None = None
    high: int | None = None
    table: DeviceInts | None = None

    def epilogue(self, scales: tuple[float, ...] = (), zeros: tuple[int, ...] = ()) -> Requantise:
        """The epilogue of the layer; it has the scales and zero points of the operands unless constants have them."""
        return Requantise(self.to.zero_point, self.low, self.high, self.table is not None, scales, zeros)


def tail_of(layers: LayerGraph, node: Node, y: Quantisation) -> Tail:
    """The tail of an operator with what was fused into it: a clamp requantises as the result is held, `y`; a table needs parameters for
    the value before it. Raises `ProgramError` E0806 when nothing says that value's range."""
    held = layers.format
    if not isinstance(node.attributes, Fused) or (fused := activation_of(node.attributes)) is None:
        return Tail(y)
    operator, parameters = fused
    match operator.legalisation:
        case Clamp(bounds):
            return Tail(y, *clamp_bounds(*bounds(parameters), y, held))
        case Table(function) if node.attributes.pre is not None:
            layers.reading(node)
            before = layers.covering(*node.attributes.pre)
            return Tail(before, table=function_table(lambda x: function(parameters, x), before, y, held))
    raise ProgramError(Diagnostic("E0806", f"nothing says the range of {node.name} before {operator.name}: graphs are calibrated first"))
