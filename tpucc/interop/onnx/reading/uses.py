"""What values of a file are, by what reads or makes them, and by their names: images, [N, C, H, W] or [N, C, L], and weights among the
constants of one value, of which the others are numbers of the source.

The name of a constant tells: parameters are called after the module that has them, and what an exporter makes of a number in the code has a
made-up name, or that of the number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpucc.interop.onnx.reading.files import names
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.operators.rows import Fact, has

BLOCKS = frozenset([(0, 1, 4, 2, 5, 3), (0, 3, 4, 1, 5, 2), (0, 1, 3, 5, 2, 4), (0, 3, 5, 1, 2, 4)])
"""How channels become pixels and pixels channels, between two reshapes: DepthToSpace and SpaceToDepth, each in both of its orders."""


def image_results(graph: OnnxGraph) -> frozenset[str]:
    """The values that operators on images make."""
    images: set[str] = set()
    blocks = _blocks(graph)
    for node in graph.nodes:
        sources = node.inputs if has(node.op, Fact.AXES) else [blocks[name] for name in node.outputs if name in blocks]
        if has(node.op, Fact.IMAGES) or not images.isdisjoint(sources):
            images.update(node.outputs)
    return frozenset(images)


def image_inputs(graph: OnnxGraph) -> frozenset[str]:
    """The inputs that operators on images read, or that join what these make."""
    images, beside, blocks = set[str](), set(image_results(graph)), _blocks(graph)
    for node in reversed(graph.nodes):
        if has(node.op, Fact.IMAGES) and node.inputs:
            images.add(node.inputs[0])
        elif has(node.op, Fact.AXES):
            for found in (images, beside):
                if not found.isdisjoint(node.outputs):
                    found.update(node.inputs)
        else:
            images.update(blocks[name] for name in node.outputs if name in blocks and name in images)
    ranks = {value.name: len(value.shape or ()) for value in graph.inputs}
    return frozenset(name for name, rank in ranks.items() if (rank in (3, 4) and name in images) or (rank == 4 and name in beside))


def _blocks(graph: OnnxGraph) -> dict[str, str]:
    """The images of which Reshape, Transpose and Reshape make others in blocks, by the names of these."""
    found = {}
    made = {name: node for node in graph.nodes for name in node.outputs}
    for node in graph.nodes:
        turned = _before(node, "Reshape", made)
        first = _before(turned, "Transpose", made) if turned else None
        if turned and first and first.op == "Reshape" and turned.attributes.get("perm") in BLOCKS:
            found[node.outputs[0]] = first.inputs[0]
    return found


def _before(node: OnnxNode, op: str, made: dict[str, OnnxNode]) -> OnnxNode | None:
    """The node whose result a node of this operator reads."""
    return made.get(node.inputs[0]) if node.op == op and node.inputs else None


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
