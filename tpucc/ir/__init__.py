"""The graph and its parts: what passes, operators and layers are written with."""

from __future__ import annotations

from tpucc.ir.constants import Constant
from tpucc.ir.graph import Graph, GraphBuilder
from tpucc.ir.node import Attributes, NoAttributes, Node, Output
from tpucc.ir.types import Quantisation, Range, TensorType, f32

__all__ = [
    "Attributes",
    "Constant",
    "Graph",
    "GraphBuilder",
    "NoAttributes",
    "Node",
    "Output",
    "Quantisation",
    "Range",
    "TensorType",
    "f32",
]
