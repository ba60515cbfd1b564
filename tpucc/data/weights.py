"""Weights: from the keys of the source to values, read from an archive or drawn at random."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from tpucc.data.archive import Archive, ArrayFile
from tpucc.data.safetensors import SUFFIX, Safetensors
from tpucc.diagnostics import CompileError, Diagnostic, InputError, LimitError, counted, did_you_mean, printable, some
from tpucc.ir import Constant, Graph, Node
from tpucc.ir.constants import Random, random_array
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops.constant import OP as constant
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.evaluate import require_computable
from tpucc.ops.weight import WeightAttributes

FLOAT32 = np.dtype("<f4")
FLOATS = frozenset(("float16", "float32", "float64"))
"""The types that weights may have in an archive, in any byte order; all are converted to float32."""
MAX_DRAWN_BYTES = 2**30
"""Quantising and tiles take several times as much."""
FEW = 3
"""Keys that a message names. Of a model with so many, a file that has none may be another model's."""


def weights_of(graph: Graph) -> dict[str, Node]:
    """The weight nodes of a graph by key."""
    return {node.attributes.key: node for node in graph if isinstance(node.attributes, WeightAttributes)}


def require_computable_values(graph: Graph) -> None:
    """Raises `LimitError` E0640 for a value past the limit, of the types: before anything is drawn or computed. Weights have limits of
    their own."""
    require_computable(*(node for node in graph if not isinstance(node.attributes, WeightAttributes)))


def bind_drawn(graph: Graph, seed: int) -> Graph:
    """The graph with every weight drawn from `seed` and its own key."""
    weights = weights_of(graph)
    total = sum(4 * node.type.size for node in weights.values())
    if total > MAX_DRAWN_BYTES:
        largest = max(weights.values(), key=lambda node: node.type.size)
        raise LimitError(_about(largest, "E0610", f"the model's weights have {total:,} bytes; at most {MAX_DRAWN_BYTES:,} are drawn"))
    return _bound(graph, {key: random_array(node.type.shape, Random(seed, key)) for key, node in weights.items()})


def bind_archive(graph: Graph, path: Path) -> Graph:
    """The graph with every weight read from the archive at `path`.

    The file is one of safetensors when its name says so, else an npz archive. Raises `InputError` that lists everything that doesn't fit:
    missing and unexpected keys, types, shapes, NaN and infinity. The graph has a note when weights were rounded to float32.
    """
    weights = weights_of(graph)
    with _opened(path) as archive:
        problems = [*_key_problems(weights, archive), *_type_problems(weights, archive)]
        if problems:
            raise InputError(problems)
        values = {}
        for key, node in weights.items():
            values[key] = _float32(read := archive.read(key))
            problems += _value_problem(node, key, values[key], read, path)
        rounded = [key for key in weights if archive.members[key].dtype.itemsize > FLOAT32.itemsize]
    if problems:
        raise InputError(problems)
    return _bound(graph, {key: Constant(value) for key, value in values.items()}).noting(*_rounding(rounded, len(weights), path))


def bind_arrays(graph: Graph, arrays: Mapping[str, AnyArray]) -> Graph:
    """The graph with its weights from arrays that were made for it."""
    return _bound(graph, {key: Constant(array) for key, array in arrays.items()})


def require_source(graph: Graph) -> None:
    """Raises `CompileError` when the graph has weights; for models that name no place to read them from."""
    for key, node in weights_of(graph).items():
        mend = ('write weights "FILE.npz" at the top of the source, or weights random(seed=0), or pass --weights FILE.npz',)
        raise CompileError(
            Diagnostic("E0422", f"the model has weights ({key}), but nothing says where they are", node.origin.trail(), mend)
        )


def _bound(graph: Graph, values: Mapping[str, Constant]) -> Graph:
    def bind(node: Node) -> Node:
        if not isinstance(node.attributes, WeightAttributes):
            return node
        value = ConstantAttributes(values[node.attributes.key])
        return constant.node(node.name, (), value, node.type, node.origin, node.place)

    return graph.with_nodes(bind(node) for node in graph)


def _opened(path: Path) -> ArrayFile:
    return Safetensors(path) if path.suffix.lower() == SUFFIX else Archive(path)


def _float32(values: AnyArray) -> AnyArray:
    """Rounded to the nearest float32; what is too large for it becomes infinite, which is refused afterwards."""
    with np.errstate(over="ignore"):
        return values.astype(FLOAT32, copy=False)


def _rounding(keys: list[str], count: int, path: Path) -> Iterable[str]:
    """A sentence for the user, once, when weights were rounded."""
    if keys:
        which = "all weights" if len(keys) == count else f"{counted(len(keys), 'weight')} ({some(keys, FEW)})"
        are = "is" if len(keys) == 1 < count else "are"
        small = "array.astype('float32') saves half of the file"
        yield f"{path.name}: {which} {are} float64 and {are} rounded to float32, in which tpucc computes; {small}"


def _key_problems(weights: Mapping[str, Node], archive: ArrayFile) -> Iterable[Diagnostic]:
    extra = [key for key in archive.members if key not in weights]
    missing = [key for key in weights if key not in archive.members]
    if extra and len(missing) == len(weights) >= FEW:
        mend = f"is it another model's file? It has {some(list(map(printable, extra)), FEW)}; the model declares {some(missing, FEW)}"
        yield _about(weights[missing[0]], "E0423", f"{archive.path} has none of the model's {len(weights):,} weights", (mend,))
        return
    for key in missing:
        mend = did_you_mean(key, extra)
        yield _about(weights[key], "E0423", f"{archive.path} has no weight {key}", (mend,))
    for key in extra:
        mend = did_you_mean(key, missing) or f'save the file without it, or declare it: weight name: f32[…] = "{printable(key)}"'
        yield Diagnostic("E0424", f"{archive.path} has {key}, which the model doesn't declare", help=(mend,))


def _type_problems(weights: Mapping[str, Node], archive: ArrayFile) -> Iterable[Diagnostic]:
    for key, node in weights.items():
        member = archive.members.get(key)
        if member is None:
            continue
        if member.shape != node.type.shape:
            mend = (_layout(member.shape, node.type.shape),)
            yield _about(node, "E0425", f"{archive.path}: {key} is {member}, but the model declares {node.type.brief}", mend)
        elif member.dtype.name not in FLOATS:
            mend = (_REAL.get(member.dtype.kind, "save it as float32: array.astype('float32')"),)
            yield _about(node, "E0426", f"{archive.path}: {key} is {member}, and weights are numbers with a point", mend)


_REAL = {"c": "a weight is one real number: array.real are the real parts", "U": "save numbers, not text", "S": "save numbers, not text"}
"""The help for an array whose numbers no `astype` makes, by its kind in NumPy."""


def _layout(found: tuple[int, ...], declared: tuple[int, ...]) -> str:
    """How an array would fit, when its axes are only in the order of another framework; else empty."""
    if len(declared) == 2 and found == declared[::-1]:
        return "transposed it fits: save array.T, for PyTorch keeps a matrix as [outputs, inputs] and tpucc as [inputs, outputs]"
    if len(declared) == 4 and tuple(found[axis] for axis in (2, 3, 1, 0)) == declared:
        return (
            "with its axes in another order it fits: save array.transpose(2, 3, 1, 0), for PyTorch keeps kernels as OIHW and tpucc as HWIO"
        )
    if math.prod(found) == math.prod(declared) and tuple(s for s in found if s != 1) == tuple(s for s in declared if s != 1):
        return f"save array.reshape({', '.join(map(str, declared))}), which has the same numbers"
    if len(found) == len(declared):
        return "the file's weights are of a model with its sizes; for other sizes write weights random(seed=0), or train them"
    return ""


def _value_problem(node: Node, key: str, value: AnyArray, read: AnyArray, path: Path) -> Iterable[Diagnostic]:
    """The error of a weight that isn't finite in float32; `read` is the file's array."""
    bad = ~np.isfinite(value)
    if bad.any():
        index = place_of_largest(bad)
        count, found = int(bad.sum()), float(read[index])
        number = "NaN" if math.isnan(found) else "infinite" if math.isinf(found) else f"{found:g}, beyond what float32 holds"
        more = f", and {counted(count - 1, 'more value')} like it" if count > 1 else ""
        yield _about(node, "E0427", f"{path}: {key}{list(index)} is {number}{more}")


def _about(node: Node, code: str, message: str, mend: tuple[str, ...] = ()) -> Diagnostic:
    return Diagnostic(code, message, node.origin.trail("declared here"), mend)
