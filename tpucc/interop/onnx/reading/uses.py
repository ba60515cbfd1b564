"""What values of a file are, by what reads or makes them, and by their names: images, [N, C, H, W] or [N, C, L], and weights among the
constants of one value, of which the others are numbers of the source.

The name of a constant tells: parameters are called after the module that has them, and what an exporter makes of a number in the code has a
made-up name, or that of the number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpucc.interop.onnx.reading.files import names
from tpucc.interop.onnx.reading.files.model import OnnxGraph
from tpucc.interop.onnx.reading.operators.rows import Fact, has


def image_results(graph: OnnxGraph) -> frozenset[str]:
    """The values that operators on images make."""
    images: set[str] = set()
    for node in graph.nodes:
        if has(node.op, Fact.IMAGES) or (has(node.op, Fact.AXES) and not images.isdisjoint(node.inputs)):
            images.update(node.outputs)
    return frozenset(images)


def image_inputs(graph: OnnxGraph) -> frozenset[str]:
    """The inputs that operators on images read, or that join what these make."""
    images, beside = set[str](), set(image_results(graph))
    for node in reversed(graph.nodes):
        if has(node.op, Fact.IMAGES) and node.inputs:
            images.add(node.inputs[0])
        elif has(node.op, Fact.AXES):
            for found in (images, beside):
                if not found.isdisjoint(node.outputs):
                    found.update(node.inputs)
    ranks = {value.name: len(value.shape or ()) for value in graph.inputs}
    return frozenset(name for name, rank in ranks.items() if (rank in (3, 4) and name in images) or (rank == 4 and name in beside))


PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)+")
"""A module's path with the name of its parameter."""


def single_weights(graph: OnnxGraph, called: Mapping[str, str]) -> frozenset[str]:
    """Constants [1], [1, 1] and so on with a name of their own, which `called` has for computed ones. Those without axes are only where
    their name is a module's path."""
    single = {name: called.get(name, name) for name, array in graph.constants.items() if array.size == 1}
    return frozenset(name for name, own in single.items() if _is_parameter(own, bool(graph.constants[name].ndim)))


def _is_parameter(name: str, has_axes: bool) -> bool:
    """Whether a constant has a name that a network gives to its parameters."""
    if "/ReadVariableOp" in name:  # TensorFlow reads a variable
        return True
    return not names.ANONYMOUS.fullmatch(name) and (has_axes or PATH.fullmatch(name) is not None)
