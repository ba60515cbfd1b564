"""What tpucc builds for ONNX's operators: one table, a family a file."""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.interop.onnx.reading.building.call import Rule
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.rules import (
    einsum,
    elements,
    gather_elements,
    machine_learning,
    normalisation,
    places,
    products,
    quantised,
    recurrent,
    reductions,
    resizing,
    shapes,
    windows,
)

FAMILIES = (
    einsum,
    elements,
    gather_elements,
    machine_learning,
    normalisation,
    places,
    products,
    quantised,
    recurrent,
    reductions,
    resizing,
    shapes,
    windows,
)
RULES: Mapping[str, Rule] = {op: rule for family in FAMILIES for op, rule in family.RULES.items()}
"""The rules by the operators' names."""
ALL_RULES: Mapping[str, Rule] = {**RULES, **normalisation.OWN_RULES}
"""With those of operators that no file has, which stand for several of its nodes."""


def rule_of(node: OnnxNode) -> Rule:
    """The rule of a node that there is one for."""
    return ALL_RULES[node.kind]
