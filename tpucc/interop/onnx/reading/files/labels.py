"""The names of classes that a classifier of scikit-learn returns. A source has no texts: it returns their numbers, from 0 on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

import numpy as np

from tpucc.diagnostics import listed
from tpucc.interop.onnx.reading.files.model import NO_TENSOR, OnnxGraph, OnnxNode, OnnxValue
from tpucc.interop.onnx.reading.files.names import identifier
from tpucc.interop.onnx.reading.files.problems import named, no_tensor, refused
from tpucc.interop.onnx.reading.files.tensors import FLOAT, INT64, NO_NUMBERS

CLASSIFIER, EXTRACTOR, ZIP_MAP = (f"ai.onnx.ml.{op}" for op in ("LinearClassifier", "ArrayFeatureExtractor", "ZipMap"))
PASSED_ON = frozenset(["Cast", "Identity", "Reshape"])
"""Operators between the names of classes and a result of the file."""
ATTRIBUTES = ("classlabels_ints", "classlabels_strings")
Class = int | str
NAMED = 20
"""Classes that a comment names."""


@dataclass(frozen=True)
class _Label:
    """A result that is the names of `classes`, which `source` makes of their numbers; `path` are the nodes from there to the result."""

    classes: tuple[Class, ...]
    source: OnnxNode
    path: tuple[OnnxNode, ...]

    @property
    def values(self) -> Iterator[str]:
        """The names of the values that are names of classes."""
        yield from (node.outputs[0] for node in (self.source, *self.path))


def is_counted(classes: Sequence[object]) -> bool:
    """Whether classes are the numbers 0, 1, 2 and so on: the name of each is its number."""
    return all(isinstance(name, int) and name == number for number, name in enumerate(classes))


def with_numbers_of_classes(graph: OnnxGraph) -> OnnxGraph:
    """The graph whose results are the numbers of classes in the place of their names, and tensors in the place of ZipMap's maps.

    Raises `CompileError` E1006 for other results that are no tensors, and for texts that something else reads.
    """
    made = {name: node for node in graph.nodes for name in node.outputs}
    found = _labels(graph, made)
    names = {name: _index_of(graph, name) for name, label in found.items() if not is_counted(label.classes)}
    outputs = tuple(_result(value, made.get(value.name), found.get(value.name), names) for value in graph.outputs)
    return _without_texts(replace(_with_numbers(graph, found, names) if found else graph, outputs=outputs))


def _labels(graph: OnnxGraph, made: Mapping[str, OnnxNode]) -> Mapping[str, _Label]:
    """The results that are names of classes which nothing else reads."""
    found = {value.name: label for value in graph.outputs if (label := _label(graph, made, value.name)) is not None}
    between = {node.outputs[0] for label in found.values() for node in label.path}
    elsewhere = {name for node in graph.nodes if between.isdisjoint(node.outputs) for name in node.read_names()} if found else set()
    kept = {label.source.outputs[0] for label in found.values() if not elsewhere.isdisjoint(label.values)}
    return {name: label for name, label in found.items() if label.source.outputs[0] not in kept}


def _label(graph: OnnxGraph, made: Mapping[str, OnnxNode], name: str) -> _Label | None:
    """What a result is, where it is the names of classes."""
    path: list[OnnxNode] = []
    while (node := made.get(name)) is not None and node.kind in PASSED_ON:
        path.append(node)
        name = node.inputs[0]
    if node is None or name != node.outputs[0]:
        return None
    classes: tuple[Class, ...] = ()
    if node.kind == CLASSIFIER:
        classes = next((tuple(found) for name in ATTRIBUTES if (found := node.attributes.get(name))), ())
    elif node.kind == EXTRACTOR and node.inputs[1] in made:
        known = graph.constants.get(node.inputs[0])
        classes = tuple(known.tolist()) if known is not None and known.ndim == 1 and known.dtype.kind in "iO" else ()
    return _Label(classes, node, tuple(path)) if classes else None


def _with_numbers(graph: OnnxGraph, found: Mapping[str, _Label], names: Mapping[str, str]) -> OnnxGraph:
    """The nodes of a graph in which the sources of labels give numbers, which are passed on; `names` are the new ones of results."""
    constants = dict(graph.constants)
    changed: dict[str, OnnxNode] = {}
    for label in found.values():
        source, numbers = label.source, range(len(label.classes))
        if source.kind == CLASSIFIER:
            others = {name: value for name, value in source.attributes.items() if name not in ATTRIBUTES}
            source = replace(source, attributes={**others, ATTRIBUTES[0]: tuple(numbers)})
        else:
            key = f"{source.outputs[0]}\0numbers"  # a name that no file has
            constants[key] = np.array(numbers)
            source = replace(source, inputs=(key, source.inputs[1]))
        changed[source.outputs[0]] = source
        changed |= {node.outputs[0]: node.read_as("Identity", node.inputs, {}) for node in label.path if node.kind == "Cast"}
    nodes = (changed.get(node.outputs[0], node) if node.outputs else node for node in graph.nodes)
    return replace(graph, nodes=tuple(_renamed(node, names) for node in nodes), constants=constants)


def _renamed(node: OnnxNode, names: Mapping[str, str]) -> OnnxNode:
    if names.keys().isdisjoint((*node.inputs, *node.outputs)):
        return node
    inputs, outputs = (tuple(names.get(name, name) for name in given) for given in (node.inputs, node.outputs))
    return replace(node, inputs=inputs, outputs=outputs)


def _index_of(graph: OnnxGraph, name: str) -> str:
    """The name of the numbers of the classes that a result names: `label_index`, or `label_index_2` where there is such a value."""
    taken = {*graph.constants, *(value.name for value in graph.inputs), *(made for node in graph.nodes for made in node.outputs)}
    index = identifier(f"{name}_index", "label")
    return next(free for free in chain([index], (f"{index}_{number}" for number in count(2))) if free not in taken)


def _result(value: OnnxValue, node: OnnxNode | None, label: _Label | None, names: Mapping[str, str]) -> OnnxValue:
    """A result of the graph with numbers; `node` makes it. Raises `CompileError` E1006 for one that is no tensor."""
    if label is not None:
        index = names.get(value.name, value.name)
        which = in_words(label.classes, numbered=True)
        note = f"{index} has the numbers of the classes that {named(value.name)} names in the file: {which}"
        return OnnxValue(index, INT64, value.shape, note=note if index != value.name else "")
    if value.type != NO_TENSOR:
        return value
    if node is None or node.kind != ZIP_MAP:
        raise no_tensor(value.name)
    return replace(value, type=FLOAT)


def in_words(classes: Sequence[Class], numbered: bool = False) -> str:
    """Classes in a comment, the first of many."""
    shown = [f"{number} for {name}" if numbered else str(name) for number, name in enumerate(classes[:NAMED])]
    return listed([*map(named, shown), *([f"{len(classes) - NAMED:,} more"] if len(classes) > NAMED else [])])


def _without_texts(graph: OnnxGraph) -> OnnxGraph:
    """The graph without constants of texts. Raises `CompileError` E1006 for one that something reads."""
    texts = {name for name, array in graph.constants.items() if array.dtype.kind == "O"}
    if not texts:
        return graph
    if (read := next((name for name in graph.read_names() if name in texts), None)) is not None:
        raise refused("E1006", f"the tensor {named(read)} has values of the type strings", NO_NUMBERS)
    return replace(graph, constants={name: array for name, array in graph.constants.items() if name not in texts})
