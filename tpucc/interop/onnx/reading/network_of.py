"""From the value of a file to a graph of tpucc's operators: every node by the row of its operator, and all that can't be read at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, zip_longest
from typing import Literal, get_args

import numpy as np

from tpucc.diagnostics import CompileError, Diagnostic, Origin, ProgramError, listed
from tpucc.interop.onnx.reading.building.call import Call
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import (
    BITS,
    Classes,
    Grid,
    Kind,
    Static,
    Tensor,
    Value,
    axes_of,
    class_names,
    order_of,
)
from tpucc.interop.onnx.reading.building.weights import Called, read_by
from tpucc.interop.onnx.reading.files import names
from tpucc.interop.onnx.reading.files.model import Dimension, OnnxGraph, OnnxModel, OnnxNode, OnnxValue, type_name
from tpucc.interop.onnx.reading.files.problems import CHECKER, ELSEWHERE, Misfit, TooLarge, Unsupported, malformed, named, refused, require
from tpucc.interop.onnx.reading.files.tensors import BOOL, FLOATS, NAMES, TYPES
from tpucc.interop.onnx.reading.folding import FAULTS, key_of_known, known_results
from tpucc.interop.onnx.reading.integer_operators import in_real_values
from tpucc.interop.onnx.reading.integers import is_index, is_mask, kept, moved, rows, said_scales, with_kind
from tpucc.interop.onnx.reading.nearest import NEAREST, SCIKIT_LEARN, SCIKIT_LEARNS, STRUCTURE, hindrance, misfit, problem
from tpucc.interop.onnx.reading.operators.quantised import require_usable
from tpucc.interop.onnx.reading.operators.rows import ROWS, Fact, has
from tpucc.interop.onnx.reading.operators.shapes import require_rank, stacked
from tpucc.interop.onnx.reading.row_numbers import looked_up, of_rows
from tpucc.interop.onnx.reading.taken_apart import recognised
from tpucc.interop.onnx.reading.uses import image_inputs, image_results, single_weights
from tpucc.ir import Graph, Output, Range, TensorType
from tpucc.numerics import AnyArray
from tpucc.ops.opdef import RuleError

Layout = Literal["nhwc", "nchw"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
RANGES: Mapping[int, Range] = {BOOL: Range(0.0, 1.0), 2: Range(0.0, 255.0), 3: Range(-128.0, 127.0)}
"""The values of small types, by ONNX's number."""
SKL2ONNX = "skl2onnx"
"""What names itself as the producer of scikit-learn's models."""
MAX_STEPS = 2**14
"""Nodes that the steps of loops have, together."""
_OF_SHAPES = frozenset({"Shape", "Size"})
"""Operators whose results are known, whatever the network computes."""
Read = Value | None
"""What a value is known as; None for one that a rule has failed to make."""


@dataclass(frozen=True)
class Built:
    """A graph with its weights by key. `layouts` says how values whose axes are in another order are to be given and are returned."""

    graph: Graph
    weights: Mapping[str, AnyArray]
    layouts: Mapping[str, tuple[int, ...]]
    notes: tuple[str, ...]


def built(model: OnnxModel, name: str, sizes: Mapping[str, int], layout: Layout, given: Mapping[str, int]) -> Built:
    """The graph of a model whose open sizes have these values. `given` are the values that a message names: the user chose one or more of
    them, and others may fit; empty where the user chose none. Raises `CompileError` E1006 and E1007 with everything that can't be read."""
    return _Builder(model, name, sizes, layout, given).built()


class _Builder:
    def __init__(self, model: OnnxModel, name: str, sizes: Mapping[str, int], layout: Layout, given: Mapping[str, int]) -> None:
        self.model, self.sizes, self.layout, self.given = model, sizes, layout, given
        self.graph = in_real_values(model.graph, model.opset)
        called = Called.of(model.graph)
        own = {key: array for key, array in model.graph.constants.items() if key not in called.computed}
        self.network = Network(name, own, called, single_weights(self.graph, called.names))
        self.values: dict[str, Read] = {key: Static(array, key) for key, array in self.graph.constants.items()}
        """By ONNX's names."""
        self.computed: set[str] = set()
        """Names of what can't be read, and is no constant, as the network computes it."""
        self.results: set[str] = set()
        """The names of known values that nodes compute."""
        self.steps = 0
        """Nodes of the steps of loops that have been read."""
        self.problems: dict[tuple[str, str, str], list[OnnxNode]] = {}
        self.layouts: dict[str, tuple[int, ...]] = {}
        self.used = frozenset(self.graph.read_names())
        self.names = names.names_of(self.graph)
        self.said = said_scales(self.graph)
        self.image_results = image_results(self.graph)

    def built(self) -> Built:
        images = image_inputs(self.graph)
        for value in self.graph.inputs:
            self.values[value.name] = self._input(value, value.name in images)
        for node in self.graph.nodes:
            self._read(node)
        if self.problems:
            raise CompileError(self._found())
        outputs = tuple(self._output(value) for value in self.graph.outputs)
        graph = recognised(replace(self.network.graph(), outputs=outputs))
        return Built(graph, read_by(graph, self.network.weights), self.layouts, tuple(self.network.notes))

    def _input(self, value: OnnxValue, is_image: bool) -> Tensor:
        name = self.names.inputs[value.name]
        if value.type not in TYPES:
            if value.type not in NAMES:
                raise malformed(f"the input {name} has elements of {type_name(value.type)}", CHECKER)
            help = "inputs are numbers or booleans"
            raise refused("E1006", f"the input {name} has elements of {type_name(value.type)}", help)
        kind = self._kind(value)
        if value.shape is None:
            raise refused("E1006", f"the input {name} has no shape", "onnx.shape_inference can't know it either: export the model with one")
        shape = self.shape(value)
        dtype, low_high = ("i32", rows(self.graph, value)) if kind == "int" else ("f32", self._range(value, kind))
        order = (0, *range(2, len(shape)), 1) if is_image and self.layout == "nhwc" else tuple(range(len(shape)))
        type_ = TensorType(dtype, tuple(shape[axis] for axis in order), low_high)
        if order != tuple(range(len(shape))):
            self.layouts[name] = order
        try:
            node = self.network.input(name, type_)
        except (RuleError, Unsupported) as error:
            raise refused("E1007", f"the input {name} has the shape {list(shape)}: {error.message}", error.help or ELSEWHERE) from None
        if isinstance(kind, Grid):
            self.network.note(f"{{}} takes real values here, and in the file integers, {kind.in_words}", name)
            try:
                require_usable(np.asarray(kind.scale), scale := self.said[value.name][0])
                node = self.network.on(node, kind, name)
            except Unsupported as error:
                who = next(node.title for node in self.graph.nodes if scale in node.inputs)
                raise refused("E1007", f"{who}: {error.message}, of the integers of the input {name}", error.help) from None
        elif kind in ("bool", "whole") or (kind == "int" and value.type in FLOATS):
            values = "numbers of rows" if kind == "int" else "0.0 and 1.0" if low_high == RANGES[BOOL] else "whole numbers"
            self.network.note(f"{{}} takes {values} as {dtype} here, and {type_name(value.type)} in the file", name)
        return Tensor(node, axes_of(order), kind)

    def _kind(self, value: OnnxValue) -> Kind:
        """What the elements of an input are."""
        if value.type in FLOATS:  # the rules refuse what else is computed of numbers of rows
            return "int" if rows(self.graph, value) else "float"
        if value.type == BOOL:
            return "bool"
        return self._said(value.name, TYPES[value.type].name) or ("int" if is_index(self.graph, value.name) else "whole")

    def _range(self, value: OnnxValue, kind: Kind) -> Range | None:
        """The values of an input that is f32 here and of another type in the file."""
        if kind == "whole" and is_mask(self.graph, value.name):
            return RANGES[BOOL]
        return RANGES.get(value.type) if kind in ("bool", "whole") else None

    def _said(self, name: str, type_: str) -> Grid | None:
        """The grid of integers of a type, by the scale that is said of them; None where that is none, or isn't known."""
        if name not in self.said or type_ not in BITS:
            return None
        scale, zero = (self.values.get(said) if said else Static(np.zeros((), type_), "") for said in self.said[name])
        if not isinstance(scale, Static) or not isinstance(zero, Static):
            return None
        fits = scale.array.size == zero.array.size == 1 and scale.array.dtype.kind == "f" and zero.array.dtype.name == type_
        return Grid.of(scale.array, zero.array) if fits else None

    def shape(self, value: OnnxValue) -> tuple[int, ...]:
        """The sizes of an input."""
        return tuple(
            size if isinstance(size, int) else self.sizes[self.names.sizes[value.name, axis]] for axis, size in enumerate(value.shape or ())
        )

    def _read(self, node: OnnxNode) -> None:
        operands = [self.values[name] if name else None for name in node.inputs]
        is_computed = any(isinstance(self.values.get(name), Tensor) or name in self.computed for name in node.inputs)
        if any(name and self.values[name] is None for name in node.inputs):
            results: Iterable[Read] = [None] * len(node.outputs)
            if (why := hindrance(node, is_computed)) is not None:
                self._unread(node, why)
        else:
            try:
                results = tuple(self._results(node, operands))
                require_rank(max((len(value.shape) for value in results if isinstance(value, Tensor | Static)), default=0))
                require(self.used.isdisjoint(node.outputs[len(results) :]))
            except (Misfit, TooLarge) as fault:
                raise self._damaged(node, operands, fault) from None
            except Unsupported as found:
                self._unread(node, found)
                results = [None] * len(node.outputs)
        for name, value in zip_longest(node.outputs, results):
            if name:
                self.values[name] = value
                if value is None and is_computed and node.kind not in _OF_SHAPES:
                    self.computed.add(name)

    def _damaged(self, node: OnnxNode, operands: Sequence[Read], fault: Misfit | TooLarge) -> ProgramError | CompileError:
        """The error of a node that no sound file has. With other values of open sizes it may be sound."""
        who = f"{node.title} ({node.operator}):"
        if isinstance(fault, TooLarge):
            return malformed(f"{who} {fault}", code="E1003")
        message = f"{who} {misfit(node, operands)}"
        if not self.given:
            return malformed(message, node.checker)
        given = listed([f"{name} = {size:,}" for name, size in self.given.items()])
        return refused("E1007", f"{message}, with {given}", f"other sizes, by -D, may fit; if none do, {node.checker}")

    def _unread(self, node: OnnxNode, why: Unsupported) -> None:
        self.problems.setdefault((node.operator, why.message, why.help), []).append(node)

    def _found(self) -> list[Diagnostic]:
        """The messages of all that can't be read; the last one says which models of scikit-learn are read, if the file is of such a one."""
        *found, last = [problem(*key, nodes) for key, nodes in self.problems.items()]
        if any(node.domain == SCIKIT_LEARNS for node in self.graph.nodes) or self.model.producer == SKL2ONNX:
            last = replace(last, help=(*last.help, SCIKIT_LEARN))
        return [*found, last]

    def _branch(self, node: OnnxNode, condition: Read) -> Iterable[Read]:
        """The results of the branch that a condition takes, as if it stood in the place of the node; of one that the network computes, each
        is chosen from those of both branches."""
        then, other = node.attributes.get("then_branch"), node.attributes.get("else_branch")
        if isinstance(condition, Static) and condition.array.size == 1:
            return self._of_branch(then if condition.array.reshape(()) else other)
        if numbers := [self.names.inputs[value.name] for value in self.graph.inputs if value.is_number]:
            help = f"-D {numbers[0]}=… gives this input a value, and may decide the condition"
            raise Unsupported("its condition is computed by the network", help)
        if not isinstance(condition, Tensor) or condition.size != 1:
            raise Unsupported("its condition isn't one value", CHECKER)
        where, one = node.read_as("Where", node.inputs, {}), Tensor(condition.node, (), condition.kind)
        name, path = self.network.name, self.network.path
        found = list(zip(self._of_branch(then), self._of_branch(other), strict=True))
        self.network.name, self.network.path, self.network.origin = name, path, Origin(made_by=node.title)
        if any(None in pair for pair in found):  # what is wrong is noted already
            return [None] * len(found)
        known = (Static, Tensor)
        pairs = [(a, b) for a, b in found if isinstance(a, known) and isinstance(b, known) and a.shape == b.shape]
        if len(pairs) < len(found):
            raise Unsupported("its branches have results of other shapes, and the network computes which is taken", NEAREST["If"])
        calls = [Call(self.network, where, (one, *pair), self.model.opset, self.used) for pair in pairs]
        return [result for call in calls for result in self._by_row(call)]

    def _of_branch(self, branch: object) -> list[Read]:
        """The results of one branch."""
        if not isinstance(branch, OnnxGraph):
            raise Unsupported("the branch is missing")
        self.network.allow(branch.constants.values())
        return self._inside(branch)

    def _inside(self, graph: OnnxGraph) -> list[Read]:
        """The results of a graph that a node has, as if its nodes stood in the place of the node."""
        self.values |= {key: Static(array, key) for key, array in graph.constants.items()}
        for inner in graph.nodes:
            self._read(inner)
        return [self.values[value.name] for value in graph.outputs]

    def _loop(self, node: OnnxNode, operands: Sequence[Read]) -> Iterable[Read]:
        """The steps of a loop, one after the other: how many there are must be known."""
        body = node.attributes.get("body")
        if not isinstance(body, OnnxGraph) or len(body.inputs) != len(operands) or len(body.outputs) + 1 < len(operands):
            raise Unsupported("its body has other operands", CHECKER)
        self.network.allow(body.constants.values())
        most = MAX_STEPS if operands[0] is None else int(_known(operands[0]))
        is_going_on, carried = operands[1] is None or bool(_known(operands[1])), list(operands[2:])
        collected: list[list[Value]] = [[] for _ in body.outputs[1 + len(carried) :]]
        for step in range(most):
            if not is_going_on:
                break
            self.steps += max(len(body.nodes), 1)
            if self.steps > MAX_STEPS:
                raise Unsupported(f"the steps of loops have more than {MAX_STEPS:,} nodes together", "shorter sequences have fewer steps")
            given = (Static(np.array(step), body.inputs[0].name), Static(np.array(True), body.inputs[1].name), *carried)
            self.values |= {value.name: found for value, found in zip(body.inputs, given, strict=True)}
            condition, *results = self._inside(body)
            if None in results or condition is None:  # what is wrong is noted already
                return [None] * len(node.outputs)
            is_going_on = bool(_known(condition))
            carried = results[: len(carried)]
            for values, found in zip(collected, results[len(carried) :], strict=True):
                values += [found] if isinstance(found, Static | Tensor) else []
        return [
            *carried,
            *(stacked(self.network, values, name) for values, name in zip(collected, node.outputs[len(carried) :], strict=False)),
        ]

    def _structure(self, node: OnnxNode, given: Sequence[Read]) -> Iterable[Read]:
        """The results of an operator that is taken apart here. Raises `Unsupported` where that takes what the network computes."""
        if len(given) < (2 if node.kind == "Loop" else 1):
            raise Unsupported("an operand is missing", CHECKER)
        return self._loop(node, given) if node.kind == "Loop" else self._branch(node, given[0])

    def _results(self, node: OnnxNode, given: Sequence[Read]) -> Iterable[Read]:
        network = self.network
        network.name = names.of_node(node)
        network.path, network.origin = names.path_of(node), Origin(made_by=node.title)
        opset = self.model.opsets.get(node.domain, self.model.opset)
        if node.kind in STRUCTURE:
            return self._structure(node, given)
        if (why := hindrance(node, any(isinstance(value, Tensor) for value in given))) is not None:
            raise why
        call = Call(network, node, given, opset, self.used)
        if (arrays := known_results(call)) is None:
            return self._by_row(call) if (made := of_rows(call)) is None else [made]
        known = [value for value in given if isinstance(value, Static) and value.name not in self.results]
        key = key_of_known(node, known, arrays[0])
        statics = [
            Static(array, key if index == 0 else name) for index, (array, name) in enumerate(zip(arrays, node.outputs, strict=False))
        ]
        self._call(node, given, statics)
        self.results |= {static.name for static in statics if static.name in node.outputs}
        return statics

    def _call(self, node: OnnxNode, operands: Sequence[Value | None], statics: Sequence[Static]) -> None:
        """Notes what results are called that have been computed of constants."""
        if operands and isinstance(operands[0], Static):
            known = [operand for operand in operands if isinstance(operand, Static)]
            self.network.called.note(node, known, [static for static in statics if static.name in node.outputs])

    def _by_row(self, call: Call) -> list[Value]:
        """The results by the row of the node's operator. Raises `Unsupported`, and `Misfit` for what no sound node has."""
        network, node = self.network, call.node
        call = replace(call, inputs=[value and looked_up(network, value) for value in call.inputs])
        if not has(node.kind, Fact.INTEGERS) and not has(node.op, Fact.KEEPS) and any(map(_is_integers, call.inputs)):
            raise Unsupported("it computes with the integers of quantised values", "DequantizeLinear before it makes real values of them")
        if any(map(_is_label, call.inputs)) and not has(node.op, Fact.VIEW) and node.op not in ("ArrayFeatureExtractor", "Cast"):
            raise Unsupported("the network computes with the names of its classes", "names of classes may only be a result")
        row = ROWS[node.kind]
        try:
            with np.errstate(all="ignore"):  # what isn't finite is judged where it becomes a constant
                inputs, grid = kept(network, node, call.inputs, self._said)
                made = row.built(replace(call, inputs=inputs))
        except FAULTS:
            raise Unsupported(misfit(node, call.inputs), node.checker) from None
        results = made if isinstance(made, tuple) else (made,)
        return [with_kind(node, inputs, moved(network, value, grid)) for value in results]

    def _output(self, value: OnnxValue) -> Output:
        """A result in the file's order, images with their channels last."""
        found = self.values[value.name]
        assert found is not None
        name = self.names.outputs[value.name]
        if isinstance(found, Tensor) and isinstance(found.kind, Classes):
            name = self._index_of(name)
            which = class_names(found.kind.names, numbered=True)
            self.network.note(f"{name} has the numbers of the classes that {{}} names in the file: {which}", value.name)
        self.network.name = name
        try:
            tensor = self.network.tensor(looked_up(self.network, found))
            order = tuple(range(tensor.rank))
            if self.layout == "nhwc" and self._is_image(value.name, tensor):
                order = (0, *range(2, tensor.rank), 1)
                self.layouts[name] = order
            node = self.network.arranged(tensor, order)
        except Unsupported as problem:
            what = " is a constant that" if isinstance(found, Static) else ""
            raise refused("E1007", f"the output {name}{what} can't be read: {problem.message}", problem.help) from None
        if value.shape is not None and not _fits(value.shape, tensor.shape):
            said, there = ([named(str(size)) for size in shape] for shape in (value.shape, tensor.shape))
            self.network.note(f"The file says that {{}} is [{', '.join(said)}], and it is [{', '.join(there)}]", name)
        if isinstance(tensor.kind, Grid):
            self.network.note(f"{{}} has real values here, and in the file integers, {tensor.kind.in_words}", name)
        return Output(name, node.name)

    def _index_of(self, name: str) -> str:
        """What the numbers of the classes are called that a result names: `label_index`, or `label_index_2` where there is such a name."""
        taken = {*self.names.outputs.values(), *self.names.inputs.values(), *self.names.sizes.values()}
        return next(free for number in count(1) if (free := f"{name}_index{f'_{number}' if number > 1 else ''}") not in taken)

    def _is_image(self, name: str, t: Tensor) -> bool:
        """Whether a result is an image: an operator on images makes it, or its node has the axes of one."""
        if t.rank == 4:
            return name in self.image_results or order_of(t) == (0, 2, 3, 1) or _lies_last(t)
        return t.rank == 3 and any(len(kept) == 3 for kept in self.layouts.values()) and _lies_last(t)


def _lies_last(t: Tensor) -> bool:
    """Whether the tensor's node has the channels, the second axis, behind the others already."""
    moving = [part for axis in (0, *range(2, t.rank), 1) for part in t.axes[axis] if t.node.type.shape[part] != 1]
    return moving == sorted(moving) and bool(t.axes[1]) and t.axes[1][-1] == t.node.type.rank - 1


def _known(value: Read) -> AnyArray:
    """One number or condition. Raises `Unsupported` where the network computes it."""
    if not isinstance(value, Static) or value.array.size != 1:
        raise Unsupported("the network computes how many steps it has", NEAREST["Loop"])
    return value.array.reshape(())


def _is_integers(value: Value | None) -> bool:
    """Whether a value is integers of the file that are held here as the real values that they stand for."""
    return isinstance(value, Tensor) and isinstance(value.kind, Grid)


def _is_label(value: Value | None) -> bool:
    """Whether a value is texts, or the numbers of classes that have other names in the file."""
    return isinstance(value.kind, Classes) if isinstance(value, Tensor) else value is not None and value.array.dtype.kind == "O"


def _fits(declared: Sequence[Dimension], shape: Sequence[int]) -> bool:
    """Whether a shape is what a file says, which may leave sizes open."""
    sizes = zip(declared, shape, strict=False)
    return len(declared) == len(shape) and all(size == found for size, found in sizes if isinstance(size, int))
