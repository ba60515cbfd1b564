"""An ONNX file as a value: its nodes, constants, inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tpucc.interop.onnx.reading.files.problems import CHECKER, named
from tpucc.interop.onnx.reading.files.tensors import BOOL, INT32, INT64, NAMES, TYPES
from tpucc.numerics import AnyArray

OPSETS = range(7, 29)
"""The versions of ONNX's operators that are read."""
OPTIMISED = "com.microsoft"
"""The domain of operators that ONNX Runtime's optimizer and its quantiser make."""


NO_TENSOR = -1
"""In the place of ONNX's number of a type, of a result that is a sequence or a map."""
Dimension = int | str | None
"""A size, the name of one, or nothing."""


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """An operation. A missing operand or result has the empty name. An attribute is a number, a string, an array, a graph, or a tuple."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    domain: str = ""
    scope: str = ""
    """The part of the network that it belongs to, as `encoder.layers.0`, where the exporter says so."""
    proto: Any = None
    """The node as the package onnx has it, with which it checks the node, and computes constants."""
    of: OnnxNode | None = None
    """The file's node in whose place it stands, where the file has another operator there."""

    @property
    def title(self) -> str:
        """How messages call the node, as the file has it: by its name, or by that of its result."""
        node = self.of or self
        return named(node.name or next(filter(None, node.outputs), node.op))

    @property
    def operator(self) -> str:
        """How messages call the operator: as the file has it, and what it was read as."""
        return named(self.kind) if self.of is None or self.of.kind == self.kind else f"{named(self.of.kind)}, read as {named(self.kind)}"

    def read_as(self, op: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> OnnxNode:
        """Another operator in the place of the node."""
        return replace(self, op=op, domain="", inputs=tuple(inputs), attributes=attributes, proto=None, of=self.of or self)

    @property
    def checker(self) -> str:
        """What may say more of a node that isn't what its operator says; the package onnx doesn't know ONNX Runtime's operators."""
        return "onnxruntime.InferenceSession(FILE) may say more" if (self.of or self).domain == OPTIMISED else CHECKER

    @property
    def kind(self) -> str:
        """The operator with its domain, as tables have it: `Conv`, `com.microsoft.QLinearAdd`."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def graphs(self) -> Iterator[OnnxGraph]:
        """The graphs inside it: the branches of a condition, the body of a loop."""
        return (value for value in self.attributes.values() if isinstance(value, OnnxGraph))

    def with_graphs(self, change: Callable[[OnnxGraph], OnnxGraph]) -> OnnxNode:
        """The node with its graphs changed."""
        changed = {name: change(value) for name, value in self.attributes.items() if isinstance(value, OnnxGraph)}
        return replace(self, attributes={**self.attributes, **changed}) if changed else self

    def read_names(self) -> Iterator[str]:
        """The names of the values that it reads, by itself or in its graphs."""
        yield from self.inputs
        for inner in self.graphs:
            yield from inner.read_names()


@dataclass(frozen=True, slots=True)
class OnnxValue:
    """An input or an output: the type is ONNX's number; a shape of None isn't known."""

    name: str
    type: int
    shape: tuple[Dimension, ...] | None

    @property
    def is_number(self) -> bool:
        """Whether it is one integer or boolean, as a rate of samples or a flag: it is a constant if a value is given for it."""
        return self.type in (INT32, INT64, BOOL) and self.shape is not None and {1}.issuperset(self.shape)


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """The nodes in order, and what they begin and end with."""

    name: str
    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, AnyArray]
    inputs: tuple[OnnxValue, ...]
    outputs: tuple[OnnxValue, ...]
    folded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the values of which PyTorch's export has computed constants, by the names of these."""

    def read_names(self) -> Iterator[str]:
        """The names of values that the nodes, or those of graphs inside them, read, or that are results."""
        for node in self.nodes:
            yield from node.read_names()
        yield from (value.name for value in self.outputs)


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A file: its graph, the versions of its operators by domain, and the program that wrote it."""

    graph: OnnxGraph
    opsets: Mapping[str, int]
    producer: str = ""

    @property
    def opset(self) -> int:
        return self.opsets.get("", OPSETS.stop - 1)


def type_name(kind: int) -> str:
    """ONNX's type of elements in words."""
    return NAMES.get(kind) or (TYPES[kind].name if kind in TYPES else f"the unknown type {kind}")
