"""Names of tpucc from those of ONNX: `/layer1/layer1.0/conv1/Conv` becomes `layer1_0_conv1`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import named
from tpucc.language.frame import is_function
from tpucc.language.literals import KEYWORDS
from tpucc.source.names import TOP_LEVEL

UNKNOWN_SIZE = re.compile(r"unk__\d+|(p2o\.)?DynamicDimension\.\d+")
"""Names that tf2onnx and Paddle2ONNX make up for sizes that had none."""
OPERATION = re.compile(
    r"(Add|BiasAdd|Cast|ExpandDims|GatherV2|MatMul|ReadVariableOp|Reshape|Squeeze|Tensordot|convolution|depthwise|merged_input|resource)"
    r"(_?\d+)?"
)
"""Operations of a layer: the last parts of names."""
KERNELS = ("/convolution", "/depthwise", "/MatMul")
"""Those by which a layer is known, of several that TensorFlow Lite has made one."""


def layer_of(name: str) -> str:
    """`net.dense`, of `net/dense/BiasAdd/ReadVariableOp:0`, or of `net/dense/Relu;net/dense/MatMul`. Empty for a name of no operation.

    Recurrent layers have a part `while` for their loops, and not for what is computed before them.
    """
    joined = name.removesuffix(":0").split(";")
    parts = [part for part in next((part for part in joined if part.endswith(KERNELS)), joined[0]).split("/") if part]
    if len(parts) < 2 or not (name.endswith(":0") or len(joined) > 1 or OPERATION.fullmatch(parts[-1])):
        return ""
    parts.pop()
    while len(parts) > 1 and OPERATION.fullmatch(parts[-1]):
        parts.pop()
    return ".".join(part for part in parts if part != "while")


K = TypeVar("K")
LONGEST = 60
STATE = 3
"""The axes of states."""
BATCH = "batch"
"""The name of a first size that has none."""
LONGEST_KEY = 1000
"""A member of an archive has a name of at most 65,535 bytes."""
RESERVED = frozenset((*KEYWORDS, *TOP_LEVEL, "weight"))


def identifier(text: str, otherwise: str) -> str:
    """A name of the language that keeps what a text means; `Identity:0`, as TensorFlow has it, is the one result of `Identity`."""
    text = text[-LONGEST_KEY:].removesuffix(":0")
    made = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_]", "_", text)).strip("_")[-LONGEST:].strip("_") or otherwise
    if made[0].isdigit():
        made = f"{otherwise}_{made}"
    return f"{made}_" if made in RESERVED or is_function(made) else made


def of_value(text: str, otherwise: str) -> str:
    """The name of an input, a result or a size: its own, if that is one of the language, else `identifier`."""
    is_name = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text) and len(text) <= LONGEST and text not in RESERVED and not is_function(text)
    return text if is_name else identifier(text, otherwise)


@dataclass(frozen=True)
class Names:
    """What a model calls the inputs and the results of a file, and the sizes that it leaves open, by the input and its axis.

    No two are alike: sizes have the first choice, as `-D` speaks of them, and then what keeps its name.
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    sizes: Mapping[tuple[str, int], str]
    sizes_by_name: Mapping[str, str]
    """Those that have a name in the file."""

    @property
    def called(self) -> Mapping[str, str]:
        """The sizes by all names that `-D` takes: those here, and those that the file has."""
        return {name: name for name in self.sizes.values()} | dict(self.sizes_by_name)

    def renamed(self) -> tuple[str, ...]:
        """Which have other names in the file, in words."""
        sizes = {theirs: ours for theirs, ours in self.sizes_by_name.items() if not UNKNOWN_SIZE.fullmatch(theirs)}
        kinds = (("the size", sizes), ("the input", self.inputs), ("the output", self.outputs))
        return tuple(f"{kind} {named(theirs)} to {ours}" for kind, names in kinds for theirs, ours in names.items() if theirs != ours)


def names_of(graph: OnnxGraph) -> Names:
    """The names of a graph."""
    axes: dict[tuple[str, int], str | tuple[str, int]] = {}
    wanted: dict[str | tuple[str, int], str] = {}
    batches = _batches(graph)
    has_batch = any((value.shape or ("",))[0] is None for value in graph.inputs)
    for value in graph.inputs:
        is_state = has_batch and len(value.shape or ()) == STATE and isinstance((value.shape or ("",))[0], int)  # [layers, batch, units]
        for axis, size in enumerate(value.shape or ()):
            if not isinstance(size, int):
                is_batch = size in batches if size else axis == is_state
                key = axes[value.name, axis] = BATCH if is_batch else size or (value.name, axis)
                wanted[key] = of_value(key if isinstance(key, str) else f"{value.name}_size{axis}", "size")
    symbols = _apart(wanted, ())
    inputs = _apart({value.name: of_value(value.name, "x") for value in graph.inputs}, symbols.values())
    results = {value.name: of_value(value.name, "out") for value in graph.outputs}
    passed = {name: inputs[name] for name in results if name in inputs}
    made = _apart({name: text for name, text in results.items() if name not in passed}, (*symbols.values(), *inputs.values()))
    by_name = {key: name for key, name in symbols.items() if isinstance(key, str)} | dict.fromkeys(batches, symbols.get(BATCH, BATCH))
    return Names(inputs, passed | made, {place: symbols[key] for place, key in axes.items()}, by_name)


def _batches(graph: OnnxGraph) -> frozenset[str]:
    """The sizes that are those of batches, wherever they stand: first ones whose names an exporter has made up."""
    first = (size for value in graph.inputs for size in (value.shape or ())[:1])
    return frozenset(size for size in first if isinstance(size, str) and UNKNOWN_SIZE.fullmatch(size))


def _apart(wanted: Mapping[K, str], taken: Iterable[str]) -> dict[K, str]:
    """The names, and `name_2`, `name_3` and so on for those that are taken; what keeps the name of its key has the first choice."""
    used, found = set(taken), dict[K, str]()
    numbers: dict[str, Iterator[int]] = {}
    for key in sorted(wanted, key=lambda key: wanted[key] != key):
        name = wanted[key]
        while name in used:
            name = f"{wanted[key]}_{next(numbers.setdefault(wanted[key], count(2)))}"
        found[key] = name
        used.add(name)
    return {key: found[key] for key in wanted}


ANONYMOUS = re.compile(r"onnx::.*|/.*|val_\d+|_?\d+|.*_output_\d+|(?=.*[Cc]onstant)\w+|const_(\w+__)?\d+|.*:\d+|(.*\.)?lifted_tensor_\d+")
"""Names that exporters give to constants that had none."""


def key(name: str, path: str, role: str) -> str:
    """The key of a weight: its own name, or what it does in the node whose path this is; in both, without what no archive can have."""
    layer = layer_of(name[-LONGEST_KEY:])
    own = "" if layer or ANONYMOUS.fullmatch(name) else member(name)
    return own or member(f"{layer or path}.{role}")


def member(text: str) -> str:
    """A text as the name of an archive's member: printable, no longer than such names are, and no path to another folder."""
    printed = "".join("_" if letter == "\\" or not letter.isprintable() else letter for letter in text)
    return "/".join(part for part in printed.split("/") if part not in ("", ".", ".."))[-LONGEST_KEY:].lstrip("/")


def of_node(node: OnnxNode) -> str:
    """A node's own name as an identifier; that of its operator for `slice.5.Slice`, as tpucc's export names steps."""
    op = re.sub(r"\W", "_", _snake(node.op[:LONGEST]), flags=re.ASCII) or "op"
    made = identifier(_snake(path_of(replace(node, scope="")).replace(".", "_")), op)
    return op if re.fullmatch(rf"{op}(_\d+)?_{op}", made) else made


def module_of(node: OnnxNode) -> str:
    """The module that a node belongs to, where the file says it; else the node's own name as an identifier."""
    return path_of(node) if node.scope or "/" in node.name else of_node(node)


def path_of(node: OnnxNode) -> str:
    """The module that a node belongs to; or its own name without the repetitions of exporters, as `layer1.0.conv1`; or its operator's."""
    if node.scope:
        return node.scope
    result = f"{node.name}:0"
    if layer := layer_of((result if result in node.outputs[:1] else node.name)[-LONGEST_KEY:]):
        return layer
    parts = [part for part in node.name.removeprefix("node_")[-LONGEST_KEY:].split("/") if part]
    if parts and len(parts) > 1 and re.sub(r"_\d+$", "", parts[-1]) == node.op:
        parts.pop()
    kept = [_snake(part) if part.startswith(node.op) else part for part in parts]
    kept = [part for part, after in zip(kept, [*kept, ""][1:], strict=True) if not after.startswith(f"{part}.")]
    return ".".join(kept) or _snake(node.op[:LONGEST])


def _snake(text: str) -> str:
    """CamelCase words as others."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()
