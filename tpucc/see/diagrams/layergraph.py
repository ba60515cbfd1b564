"""The layer graph as a diagram: one box a layer, framed by where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tpucc.diagnostics import Origin, counted
from tpucc.ir import Graph, Node
from tpucc.ir.dtypes import DEFAULT_FORMAT, DEVICE_FORMATS
from tpucc.layers.kinds import LAYERS, Conv, Fc, Move, Pool, Vector, is_by_lanes, looks_up, weight_shape
from tpucc.layers.partition import Partition, partition
from tpucc.see.diagrams.diagram import Box, Cluster, Diagram
from tpucc.see.diagrams.operators import CONSTANTS, attribute_label, boxes_and_edges, constant_label, kinds_of, origins_of
from tpucc.see.palette import Kind

ROLES = ("bias", "multipliers", "table")
SUBTITLE = "Thick arrows carry {}, where an integer q stands for scale · (q - zero point); what stands in a frame runs on the device."
STEPS = " Between two frames is a host step: operators, or moves of integers, for which the device waits."


def layer_diagram(graph: Graph, title: str = "") -> Diagram:
    """The layers of the device inside frames, one for each segment; the host's operators outside; scales and zero points on the edges.

    Boxes stand in the order in which the machine computes them: what the host does before, then a segment, then a step of the host. So a
    frame is one stretch of them. `title` is the graph's name unless given.
    """
    parts = partition(graph)
    segments = {node.name: parts.segments[node.name] for node in parts.device if not node.is_input and node.op not in CONSTANTS}
    kinds = kinds_of(graph, has_layers=True)

    def box(node: Node, read: Sequence[Node]) -> Box:
        return _box(node, graph, kinds[node.name], segments.get(node.name, -1), origins_of(read))

    times = _times(parts, segments)
    ordered = replace(graph, nodes=tuple(sorted(graph, key=lambda node: times.get(node.name, 0))))
    boxes, edges = boxes_and_edges(ordered, box, _constants)
    count = 1 + max((box.cluster for box in boxes), default=-1)
    names = (f"device · {_held(graph)}",) if count == 1 else tuple(f"segment {number + 1}" for number in range(count))
    clusters = tuple(Cluster(name, layer=False) for name in names)
    steps = f", {counted(len(parts.middle), 'host step')}" if parts.middle else ""
    subtitle = SUBTITLE.format(_held(graph)) + (STEPS if steps else "")
    return Diagram("layers", "layer", f"{title or graph.name}: {_counts(graph)}{steps}", subtitle, boxes, edges, clusters)


def _times(parts: Partition, segments: Mapping[str, int]) -> Mapping[str, int]:
    """When each value is made: 2k in the host's part number k, 2k + 1 in the device's segment number k. Constants are there before."""
    found = {name: 2 * segment + 1 for name, segment in segments.items()}
    for number, part in enumerate((parts.prologue, *(step.graph for step in parts.middle), parts.epilogue)):
        found.update((node.name, 2 * number) for node in part if not node.is_input and node.op not in CONSTANTS)
    return found


def _counts(graph: Graph) -> str:
    device = sum(node.op in LAYERS for node in graph)
    others = [node for node in graph if node.op not in LAYERS.keys() | CONSTANTS | {"input", "quantize", "dequantize"}]
    host = sum(node.type.dtype not in DEVICE_FORMATS for node in others)
    return f"{counted(device, 'layer')} on the device in {_held(graph)}, {counted(host, 'operator')} on the host in float32"


def _held(graph: Graph) -> str:
    """The values on the device."""
    held = (DEVICE_FORMATS[node.type.dtype] for node in graph if node.op in LAYERS)
    return str(next(held, DEFAULT_FORMAT).numpy)


def _box(node: Node, graph: Graph, kind: Kind, segment: int, constants: tuple[Origin, ...]) -> Box:
    """A layer comes from where its constants come from too, as in the program; `constants` are their origins. `segment` is -1 for what the
    host does."""
    details = attribute_label(node) if kind is not Kind.BOUNDARY else ()
    title = node.op
    match node.attributes:
        case Fc() | Conv():
            title = "depthwise conv" if _is_depthwise(node, graph) else node.op
            details = _product(node, graph)
        case Vector(function=function):
            title = f"vector {function}"
            details = ("then table",) if looks_up(node.attributes) and function != "table" else ()
        case Pool(function=function, size=size, stride=stride):
            title = f"pool {function}"
            details = (f"{size[0]}×{size[1]}, stride {_pair(stride)}",)
        case Move(function=function):
            title, details = f"move {function}", ()
    signature = " ".join((title, node.type.brief, *(details if node.op in LAYERS else ())))
    layers, noun = ((node.name,), "") if node.op in LAYERS else ((), "operator")
    origins = (node.origin, *constants)
    return Box(title, kind, (node.name, *details), segment, origins=origins, signature=signature, name=node.name, layers=layers, noun=noun)


def _is_depthwise(node: Node, graph: Graph) -> bool:
    """Whether each filter of a convolution sees one channel of several."""
    return isinstance(node.attributes, Conv) and node.attributes.groups > 1 and graph[node.operands[1]].type.shape[2] == 1


def _product(node: Node, graph: Graph) -> tuple[str, ...]:
    """A product in words: how deep and wide it is, the kernel of a convolution, and what comes after it."""
    layer = node.attributes
    inputs, outputs = weight_shape(node, graph)
    words = [f"{inputs:,} → {outputs:,}"]
    if isinstance(layer, Conv):
        rows, columns, depth, _ = graph[node.operands[1]].type.shape
        words = [f"{rows}×{columns}×{depth:,} → {outputs:,}"]
        words += [f"stride {_pair(layer.stride)}"] if layer.stride != (1, 1) else []
        words += [f"dilation {_pair(layer.dilation)}"] if layer.dilation != (1, 1) else []
        words += [f"{layer.groups:,} groups"] if layer.groups > 1 else []
        words += ["lane by lane"] if is_by_lanes(node) else []
    if isinstance(layer, Fc) and layer.sources > 1:
        words.append(f"of {layer.sources} values")
    return (*words, "then table") if isinstance(layer, Fc | Conv) and looks_up(layer) else tuple(words)


def _pair(pair: tuple[int, int]) -> str:
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}×{pair[1]}"


def _constants(node: Node, constants: Sequence[Node]) -> tuple[str, ...]:
    """The constants of a layer in two lines: its weights, and what comes with them."""
    if not constants:
        return ()
    match node.attributes:
        case Fc(sources=count) if count > 1:
            return "matrices of zeros and ones", ", ".join(ROLES[: len(constants) - count])
        case Fc() | Conv():
            return constant_label(constants[0]), ", ".join(ROLES[: len(constants) - 1])
    if isinstance(node.attributes, Vector):
        last = constants[-1] if looks_up(node.attributes) else None
        return tuple("table" if constant is last else constant_label(constant) for constant in constants)
    return tuple(map(constant_label, constants))
