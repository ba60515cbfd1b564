"""The contents of an ONNX file as values: what `file.py` makes bytes of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tpucc.ir import TensorType
from tpucc.numerics import AnyArray


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node with one result. `name` is that of the node of our graph that it ends, or else the result's.

    An input that is left out has no name. `origin` are the places in the source.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    result: str
    attributes: Mapping[str, Any]
    origin: str = ""


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A graph: nodes in order, constants by name, inputs and outputs with their types."""

    name: str
    nodes: tuple[OnnxNode, ...]
    initializers: Mapping[str, AnyArray]
    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]
