"""Constant folding in training: only what every machine for floats computes to the same bits."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Node
from tpucc.ops import OPS
from tpucc.ops.floats import Ieee
from tpucc.passes.constant_folding import ConstantFolding


@dataclass(frozen=True)
class FoldExact(ConstantFolding):
    """Replaces an operator whose operands are all constants by its value, if it consists of single IEEE operations.

    The value of any other operator depends on the machine that trains, and compiling computes with NumPy.
    """

    name = "fold-exact"
    summary = "computes what depends on constants only, where all machines agree on it"

    def _may_fold(self, node: Node, values: list[Constant]) -> bool:
        return super()._may_fold(node, values) and isinstance(OPS[node.op].floats, Ieee)
