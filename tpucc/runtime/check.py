"""Compares the integers that the device computes with the integer reference, and gives the float32 reference of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tpucc.compilation import Compilation
from tpucc.ir import Graph
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate
from tpucc.passes.input_arrays import batches, random_array
from tpucc.runtime.batches import Arrays, Batches
from tpucc.runtime.runtime import DevicePart, Runtime


@dataclass(frozen=True, slots=True)
class Comparison:
    """One result of the device against the integer reference: the number of elements and of unequal elements. The first unequal element is
    given in words (`first`), by its `index` in the result of one core, and by the integer that was expected and the one that was found."""

    name: str
    elements: int
    unequal: int
    first: str = ""
    index: tuple[int, ...] = ()
    expected: int = 0
    got: int = 0


def float_reference(graph: Graph, inputs: Arrays) -> dict[str, AnyArray]:
    """The operator graph in float32, by output name, for inputs that `Batches.run` takes."""

    def once(arrays: Arrays) -> dict[str, AnyArray]:
        values = evaluate(graph, arrays)
        return {o.name: values[o.node] for o in graph.outputs}

    return _batches(graph).run(once, inputs)


def compare_with_reference(runtime: Runtime, layers: Graph, inputs: Arrays) -> list[Comparison]:
    """Each output of the device against the integer reference of the layers. `inputs` are inputs that `run` takes."""
    return parts_with_reference(runtime, layers, _device_parts(runtime, inputs))


def parts_with_reference(runtime: Runtime, layers: Graph, parts: Sequence[DevicePart]) -> list[Comparison]:
    """As `compare_with_reference`, for the inputs and integers of a run."""
    names = [port.name for port in runtime.program.outputs]
    found = [(evaluate(layers, part.inputs, LAYER_REFERENCES, keep=names), part.integers) for part in parts]
    return [compared(name, [(wanted[name], got[name]) for wanted, got in found]) for name in names]


def compare_executors(runtime: Runtime, inputs: Arrays) -> list[Comparison]:
    """For a program without its layers: the fast executor against the plain one, instruction by instruction."""
    return parts_with_plain(runtime, _device_parts(runtime, inputs))


def parts_with_plain(runtime: Runtime, parts: Sequence[DevicePart]) -> list[Comparison]:
    """As `compare_executors`, for the inputs and integers of a run by the fast executor."""
    found = [(runtime.ports(part.inputs, plain=True), part.integers) for part in parts]
    return [compared(port.name, [(w[port.name], g[port.name]) for w, g in found]) for port in runtime.program.outputs]


def _device_parts(runtime: Runtime, inputs: Arrays) -> list[DevicePart]:
    return [DevicePart(part, runtime.ports(part)) for part in parts_of(runtime, inputs)]


def calibrated_inputs(compilation: Compilation) -> Arrays | None:
    """The calibration inputs: all rows where the model runs in batches, else the first batch. None where an input has none."""
    graph, given = compilation.graph, compilation.calibration or {}
    if graph is None or not graph.inputs or any(node.name not in given for node in graph.inputs):
        return None
    if _batches(graph).size is None:
        return next(batches(graph.inputs, given))
    return {node.name: given[node.name] for node in graph.inputs}


def _batches(graph: Graph) -> Batches:
    return Batches.of({node.name: node.type for node in graph.inputs}, [graph[output.node].type for output in graph.outputs])


def random_inputs(runtime: Runtime, seed: int = 0) -> dict[str, AnyArray]:
    """Random inputs for a model: standard normal, or uniform in the range that the source gives; integers likewise."""
    generator = np.random.default_rng(seed)
    return {name: random_array(generator, kind) for name, kind in runtime.inputs.items()}


def parts_of(runtime: Runtime, inputs: Arrays) -> list[Arrays]:
    """The inputs of one core at a time: batch by batch, core by core."""
    return [part for batch in runtime.batches.divided(inputs) for part in runtime.parts(batch)]


def compared(name: str, pairs: list[tuple[AnyArray, AnyArray]]) -> Comparison:
    wanted, got = (np.concatenate([pair[side].reshape(-1) for pair in pairs]) for side in (0, 1))
    unequal = np.flatnonzero(wanted != got)
    if not len(unequal):
        return Comparison(name, len(wanted), 0)
    index = int(unequal[0])
    place = tuple(int(i) for i in np.unravel_index(index % pairs[0][0].size, pairs[0][0].shape))
    text = f"{name}{list(place)}: expected {wanted[index]}, got {got[index]}"
    return Comparison(name, len(wanted), len(unequal), text, place, int(wanted[index]), int(got[index]))
