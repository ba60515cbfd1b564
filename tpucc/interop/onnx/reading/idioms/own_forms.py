"""What tpucc's export writes as several nodes, as ONNX has no such operator, as normalisations along a last axis that ONNX has second; and
which of its nodes are operators of the source that only move values, and not parts of such forms, or of the order of images.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from tpucc.interop.onnx.reading.files.model import OWN, OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.idioms.layer_norms import short
from tpucc.interop.onnx.reading.idioms.taken_apart import band
from tpucc.interop.onnx.reading.rules import of_source

FLAT = {"BatchNormalization": 2, "LRN": 4}
"""The axes to which a form makes the value flat: [-1, C], and [-1, C, 1, 1]."""
INNER = re.compile(r"(.*)\.[A-Z]\w*(\.\d+)?")
"""How the export names a node that isn't the last one of an operator, and one that puts images into another order."""


def with_own_forms(graph: OnnxGraph) -> OnnxGraph:
    """The graph with one node for each of these forms, all of whose inner values are read by it alone. In a file in float32 those operators
    of the source that only move values, or make equal ones, are marked."""
    forms = _Forms(graph)
    nodes = [forms.better(node) for node in graph.nodes]
    kept = (node for node in nodes if not forms.inner.intersection(node.outputs))
    return replace(graph, nodes=tuple(forms.marked(node) if forms.is_real else node for node in kept))


class _Forms:
    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self.made = {name: node for node in graph.nodes for name in node.outputs}
        self.reads = Counter(graph.read_names())
        self.is_real = not any(node.held for node in graph.nodes)
        """Whether the file is one in float32."""
        self.inner: set[str] = set()
        """The values that are inside of forms."""

    def better(self, node: OnnxNode) -> OnnxNode:
        """The node, or one in the place of the form that it ends."""
        found = self._flattened(node) if node.op == "Reshape" else self._even(node) if node.op == "Div" else None
        if found is None:
            joined = {"Gather": self._resized, "Squeeze": self._indexed}.get(node.op) if self.is_real else None
            return joined(node) if joined else node
        made, inner = found
        self.inner.update(inner)
        return replace(made, domain=OWN)

    def marked(self, node: OnnxNode) -> OnnxNode:
        """The node, which says whether it is an operator of the source."""
        is_last = not INNER.fullmatch(node.name) and not any(self._is_part(name, node) for name in node.inputs)
        return replace(node, is_of_source=is_last and not node.domain and node.op in of_source.RULES)

    def _is_part(self, name: str, of: OnnxNode) -> bool:
        """Whether a value is made by another node of the same operator of the source."""
        found = INNER.fullmatch(self.made[name].name) if name in self.made else None
        return found is not None and found[1] == of.name

    def _indexed(self, node: OnnxNode) -> OnnxNode:
        """A slice and the Squeeze behind it, as one node; the Squeeze as it is where there is no such slice."""
        part = self._only(node.inputs[0])
        axes = self.graph.constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
        if part is None or part.op != "Slice" or axes is None or not self._is_part(node.inputs[0], node):
            return node
        self.inner.update(part.outputs)
        return node.read_as("Slice", part.inputs, {"squeezed": tuple(map(int, axes.reshape(-1)))})

    def _resized(self, node: OnnxNode) -> OnnxNode:
        """The rows of pixels that a resize takes, and their columns, as one node; the Gather as it is where there is no such other one."""
        lines = self._only(node.inputs[0])
        if lines is None or lines.op != "Gather" or not self._is_part(node.inputs[0], node):
            return node
        places = [self.graph.constants.get(each.inputs[1]) for each in (lines, node)]
        if [each.attributes.get("axis", 0) for each in (lines, node)] != [2, 3] or any(
            array is None or array.ndim != 1 for array in places
        ):
            return node
        self.inner.update(lines.outputs)
        rows, columns = (tuple(map(int, array)) for array in places if array is not None)
        return node.read_as("Resize", lines.inputs[:1], {"rows": rows, "columns": columns})

    def _flattened(self, node: OnnxNode) -> tuple[OnnxNode, list[str]] | None:
        """Reshape(f(Reshape(x, [-1, C, …])), shape)."""
        norm = self._only(node.inputs[0])
        before = self._only(norm.inputs[0]) if norm is not None and norm.op in FLAT and len(norm.outputs) == 1 else None
        if norm is None or before is None or before.op != "Reshape":
            return None
        flat, shape = (self.graph.constants.get(each.inputs[1]) for each in (before, node))
        if flat is None or shape is None or flat.ndim != 1 or len(flat) != FLAT[norm.op] or flat[0] != -1 or (flat[2:] != 1).any():
            return None
        if not len(shape) or shape[-1] != flat[1]:
            return None
        attributes = {**norm.attributes, "shape": tuple(int(size) for size in shape)}
        return node.read_as(norm.op, (before.inputs[0], *norm.inputs[1:]), attributes), [*norm.outputs, *before.outputs]

    def _even(self, node: OnnxNode) -> tuple[OnnxNode, list[str]] | None:
        """x / (bias + share · (x² @ band))^beta: ONNX Runtime has no LRN of an even size."""
        inner: list[str] = []
        numbers: list[float] = []
        x, name = node.inputs
        for op in ("Pow", "Add", "Mul"):
            step = self._only(name)
            number = self._number(step.inputs[1]) if step is not None and step.op == op else None
            if step is None or number is None:
                return None
            inner.append(name)
            numbers.append(number)
            name = step.inputs[0]
        sums = self._only(name)
        square = self._only(sums.inputs[0]) if sums is not None and sums.op == "MatMul" else None
        if sums is None or square is None or square.op != "Mul" or square.inputs != (x, x):
            return None
        matrix = self.graph.constants.get(sums.inputs[1])
        found = band(matrix) if matrix is not None and matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] > 0 else None
        if found is None or sums.inputs[1] in self.graph.weights:
            return None
        beta, bias, share = numbers
        size, weight = found
        attributes = {"size": size, "alpha": short(share * weight * size), "beta": short(beta), "bias": short(bias)}
        return node.read_as("LRN", (x,), attributes), [*inner, name, *square.outputs]

    def _only(self, name: str) -> OnnxNode | None:
        """The node that makes a value which is read once."""
        return self.made.get(name) if self.reads[name] == 1 else None

    def _number(self, name: str) -> float | None:
        found = self.graph.constants.get(name)
        return float(found.reshape(())) if found is not None and found.size == 1 and name not in self.graph.weights else None
