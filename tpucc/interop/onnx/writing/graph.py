"""From a graph of operators, or of layers between operators, to the contents of an ONNX file.

Each value is made in one layout: that of the language, or channels first for images that ONNX computes so. Functions of elements, joins
and the like take the layout that their operands have. The other layout of a value is a Transpose, made once, when an operator first asks
for it: so convolutions and what stands between them have none.

A value has its node's name, or that of the model's output; channels first it is `NAME.nchw`. What a form makes or needs beside its result
is `NAME.Cast`, `NAME.shape` and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tpucc.diagnostics import Diagnostic, Span, UsageError
from tpucc.interop.onnx.writing.file import OnnxModel, OnnxNode
from tpucc.interop.onnx.writing.layers import layer_form
from tpucc.interop.onnx.writing.rewriting import (
    array_of,
    dequantised_by_hand,
    is_dequantised,
    moving_integers,
    with_biases,
    without_patches,
)
from tpucc.ir import Graph, Node
from tpucc.layers.kinds import is_layer
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.onnx_form import CHANNELS_FIRST, CHANNELS_LAST, Call, Declared, Form, Layout, NoForm
from tpucc.ops.weight import WeightAttributes
from tpucc.passes.rewriter import base_name

SHARED = 64
"""Elements from which on equal constants of forms are one, such as the tables of all steps of a sequence."""
IMAGE = 4
"""The axes of images."""


def onnx_model(graph: Graph, model: Iterable[Node] = ()) -> OnnxModel:
    """The graph as ONNX nodes. Initializers have the keys of the weights of `model` of which they are forms, or their nodes' names.

    Outputs are in the graph's order, and have its names; one that has the name of an input has a number behind it, for ONNX tells no
    inputs from outputs by name.

    Raises `UsageError` E1022 for every operator that has no form.
    """
    ordered = moving_integers(with_biases(without_patches(graph)))
    needed = _needed(ordered)
    _require_forms([node for node in ordered if node.name in needed])
    return _Writer(ordered, _keys(ordered, [node for node in model if isinstance(node.attributes, WeightAttributes)])).written(needed)


def _keys(graph: Graph, weights: Sequence[Node]) -> dict[str, str]:
    """The keys of the weights that constants were made of, by the constants' names. Both come from the same place of the source, and have
    as many values; of several such weights, as those of a loop, it is the one of the constant's name."""
    by_span: dict[Span, list[Node]] = {}
    for weight in weights:
        for span in weight.origin.spans:
            by_span.setdefault(span, []).append(weight)
    found: dict[str, str] = {}
    for node in graph:
        if array_of(node) is not None:
            near = {weight.name: weight for span in node.origin.spans for weight in by_span.get(span, ()) if _is_of(node, weight)}
            one = next(iter(near.values())) if len(near) == 1 else near.get(node.name) or near.get(base_name(node.name))
            if one is not None and isinstance(one.attributes, WeightAttributes):
                found[node.name] = one.attributes.key
    return found


def _is_of(node: Node, weight: Node) -> bool:
    """Whether a constant may be a form of a weight: a matrix, or one that comes from nothing else, as no bias and no multiplier does."""
    same = node.origin.spans == weight.origin.spans if node.type.rank < 2 else {*node.origin.calls} >= {*weight.origin.calls}
    return same and node.type.size == weight.type.size


def _needed(graph: Graph) -> frozenset[str]:
    """The nodes that an output needs, and the inputs."""
    found = set(graph.output_nodes)
    for node in reversed(graph.nodes):
        if node.name in found:
            found.update(node.operands)
    return frozenset(found | {node.name for node in graph.inputs})


def _require_forms(nodes: Sequence[Node]) -> None:
    found = [
        Diagnostic("E1022", f"{node.name}: {node.op} has no ONNX form: {form.why}", node.origin.labels())
        for node in nodes
        if not is_layer(node) and isinstance(form := OPS[node.op].onnx, NoForm)
    ]
    if found:
        raise UsageError(found)


def _is_declared(node: Node) -> bool:
    """Whether the node is no node of ONNX: an input, a constant."""
    return not is_layer(node) and isinstance(OPS[node.op].onnx, Declared)


def _form(node: Node, graph: Graph) -> Form:
    form = layer_form(node, graph) if is_layer(node) else OPS[node.op].onnx
    assert isinstance(form, Form)
    return form


def _place(node: Node) -> str:
    """Where the node comes from in the source, as the text form of graphs says it: `7:25-30`, several with spaces between."""
    return " ".join(map(str, node.origin.spans))


class _Writer:
    """Writes the nodes in order. `_own` and `_images` have the names of the values as the language has them, and channels first; those of
    `_turned` are made so. `masks` has for values that are 0.0 or 1.0 the boolean ones that they are made of.

    Constants have numbers until all nodes are there: then those that a node reads get their names. Values are dequantised when they are
    first asked for, in each layout anew.
    """

    def __init__(self, graph: Graph, keys: Mapping[str, str]) -> None:
        self._graph = graph
        self._keys = keys
        self._all_keys = frozenset(keys.values())
        self._nodes: list[OnnxNode] = []
        self._constants: dict[str, tuple[str, AnyArray]] = {}
        self._own = {node.name: node.name for node in graph.inputs}
        self._images: dict[str, str] = {}
        self._turned: set[str] = set()
        self._contents: dict[tuple[str, bytes], str] = {}
        self.masks: dict[str, str] = {}
        self._taken = {*self._own, *(output.name for output in graph.outputs), *self._all_keys}
        self._results = [self.fresh(output.name) if output.name in self._own else output.name for output in graph.outputs]
        self._called: dict[str, str] = {}
        for output, name in zip(graph.outputs, self._results, strict=True):
            if not _is_declared(graph[output.node]):
                self._called.setdefault(output.node, name)

    def written(self, needed: Collection[str]) -> OnnxModel:
        for node in self._graph:
            if node.name in needed and not _is_declared(node) and not is_dequantised(node):
                form = _form(node, self._graph)
                self._write(node, form, self._is_channels_first(node, form))
        for output, result in zip(self._graph.outputs, self._results, strict=True):
            if (name := self.own(output.node)) != result:
                self.add(OnnxNode(f"{result}.Identity", "Identity", (name,), result, {}))
        names = self._names_of_constants()
        nodes = [replace(node, inputs=tuple(names.get(name, name) for name in node.inputs)) for node in self._nodes]
        inputs = {node.name: node.type for node in self._graph.inputs}
        outputs = {name: self._graph[output.node].type for name, output in zip(self._results, self._graph.outputs, strict=True)}
        initializers = {name: self._constants[number][1] for number, name in names.items()}
        ranks = {node.result: self._graph[node.name].type.rank for node in nodes if node.name in self._graph.by_name}
        apart = tuple(_named_apart(dequantised_by_hand(nodes, ranks)))
        return OnnxModel(self._graph.name, apart, initializers, inputs, outputs)

    def _names_of_constants(self) -> dict[str, str]:
        """The names of those constants that a node reads; the first that wants a key has it."""
        names: dict[str, str] = {}
        keys = set(self._all_keys).difference(self._results, (node.name for node in self._graph.inputs))
        for number in (name for node in self._nodes for name in node.inputs if name in self._constants):
            if number not in names:
                wanted = self._constants[number][0]
                names[number] = wanted if wanted in keys else self.fresh(wanted)
                keys.discard(wanted)
        return names

    def key(self, name: str) -> str:
        """The name of a constant: its weight's key, and never that of another weight."""
        return self._keys.get(name) or (f"{name}.values" if name in self._all_keys else name)

    def fresh(self, wanted: str) -> str:
        """The first unused name: `w`, `w.1`, …"""
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            name = f"{wanted}.{number}"
        self._taken.add(name)
        return name

    def own(self, name: str) -> str:
        """A value as the language has it."""
        if name not in self._own:
            node = self._graph[name]
            data = array_of(node)
            if data is not None:
                self._own[name] = self.constant(data, self.key(name))
            elif is_dequantised(node):
                self._write(node, _form(node, self._graph), first=False)
            else:
                self._own[name] = self._transposed(self._images[name], CHANNELS_LAST, self._name(name), node)
        return self._own[name]

    def image(self, name: str) -> str:
        """A value channels first; of a constant with fewer than four axes, one that repeats along those that it lacks."""
        if name not in self._images:
            node = self._graph[name]
            data = array_of(node)
            if data is not None and data.ndim:
                turned = data.reshape((1,) * (IMAGE - data.ndim) + data.shape).transpose(CHANNELS_FIRST)
                self._images[name] = self.constant(turned, self.key(name))
            elif node.type.rank != IMAGE:
                return self.own(name)
            elif is_dequantised(node):
                self._write(node, _form(node, self._graph), first=True)
            else:
                self._images[name] = self._transposed(self.own(name), CHANNELS_FIRST, self.fresh(f"{name}.nchw"), node)
        return self._images[name]

    def permuted(self, name: str, perm: Sequence[int]) -> str:
        """A value with its axes in another order."""
        node = self._graph[name]
        data = array_of(node)
        if data is not None:
            return self.constant(data.transpose(perm), self.key(name))
        return self._transposed(self.own(name), perm, self.fresh(f"{name}.turned"), node)

    def shared(self, data: AnyArray, wanted: str) -> str:
        """A constant that a form needs; large ones of equal content are one."""
        return self.constant(data, wanted) if data.size < SHARED else self._once(data, wanted, "")

    def constant(self, data: AnyArray, wanted: str) -> str:
        """A constant by the name that it is to have; forms of one weight with equal content are one."""
        return self._once(data, wanted, wanted) if wanted in self._all_keys else self._new(data, wanted)

    def _once(self, data: AnyArray, wanted: str, of: str) -> str:
        content = of, f"{data.dtype.str}{data.shape}".encode() + data.tobytes()
        if content not in self._contents:
            self._contents[content] = self._new(data, wanted)
        return self._contents[content]

    def _new(self, data: AnyArray, wanted: str) -> str:
        number = f"\0{len(self._constants)}"
        self._constants[number] = wanted, np.ascontiguousarray(data).reshape(data.shape)
        return number

    def add(self, node: OnnxNode) -> str:
        self._nodes.append(node)
        return node.result

    def _name(self, node: str) -> str:
        """The name of a node's value as the language has it. That of an output is taken already."""
        return self._called.get(node) or self.fresh(node)

    def _transposed(self, value: str, perm: Sequence[int], name: str, node: Node) -> str:
        return self.add(OnnxNode(f"{name}.Transpose", "Transpose", (value,), name, {"perm": list(perm)}, _place(node)))

    def _write(self, node: Node, form: Form, first: bool) -> None:
        images = len(node.operands) * first if form.layout is Layout.ANY else int(first)
        operands = [self.image(name) if index < images else self.own(name) for index, name in enumerate(node.operands)]
        types = tuple(self._graph[name].type for name in node.operands)
        values = tuple(array_of(self._graph[name]) for name in node.operands)
        start = len(self._nodes)
        last = form.function(Call(node.attributes, tuple(operands), types, values, node.type, first, _Nodes(self, node)))
        if len(self._nodes) == start or self._nodes[-1].result != last:
            raise TypeError(f"the ONNX form of {node.op} must end in the node of its result")
        turned = first and node.type.rank == IMAGE
        name = self.fresh(f"{node.name}.nchw") if turned else self._name(node.name)
        self._nodes[-1] = replace(self._nodes[-1], name=node.name, result=name)
        (self._images if turned else self._own)[node.name] = name
        if turned:
            self._turned.add(node.name)
        if last in self.masks:
            self.masks[name] = self.masks[last]

    def _is_channels_first(self, node: Node, form: Form) -> bool:
        """Whether the form gets its operands channels first: as it asks for images, or as operands are made that it takes in any order."""
        operands = self._graph.operands(node)
        if form.layout is Layout.IMAGES:
            return operands[0].type.rank == IMAGE
        computed = [operand for operand in operands if array_of(operand) is None and operand.type.rank]
        if form.layout is Layout.OWN or node.type.rank != IMAGE or any(operand.type.rank != IMAGE for operand in computed):
            return False
        return any(self._is_turned(operand) for operand in computed)

    def _is_turned(self, node: Node) -> bool:
        """Whether a value is made channels first. A dequantised one is made as it is asked for, from integers in either layout."""
        return self._is_turned(self._graph[node.operands[0]]) if is_dequantised(node) else node.name in self._turned


def _named_apart(nodes: Iterable[OnnxNode]) -> Iterator[OnnxNode]:
    """The nodes with names of their own, as ONNX Runtime demands: a later one of the same name has a number behind it."""
    counts: Counter[str] = Counter()
    for node in nodes:
        name = node.name
        while counts[name]:
            counts[node.name] += 1
            name = f"{node.name}.{counts[node.name] - 1}"
        counts[name] += 1
        yield replace(node, name=name)


class _Nodes:
    """Makes the nodes of one operator."""

    def __init__(self, writer: _Writer, node: Node) -> None:
        self._writer = writer
        self._of = node

    def node(self, op: str, inputs: Sequence[str], attributes: dict[str, Any]) -> str:
        result = self._writer.fresh(f"{self._of.name}.{op}")
        return self._writer.add(OnnxNode(result, op, tuple(inputs), result, attributes, _place(self._of)))

    def constant(self, value: AnyArray, role: str) -> str:
        return self._writer.shared(value, f"{self._of.name}.{role}")

    def permuted(self, operand: int, perm: Sequence[int]) -> str:
        return self._writer.permuted(self._of.operands[operand], perm)

    def made_of(self, operand: int, value: AnyArray) -> str:
        return self._writer.shared(value, self._writer.key(self._of.operands[operand]))

    def real(self, mask: str) -> str:
        made = self.node("Cast", (mask,), {"to": "f32"})
        self._writer.masks[made] = mask
        return made

    def boolean(self, mask: str) -> str:
        return self._writer.masks.get(mask) or self.node("Cast", (mask,), {"to": "bool"})
