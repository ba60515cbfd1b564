"""One verdict on a compiled model: are its values right, is its program valid, how good is it.

Four comparisons, each with a fault that only it finds:

- *integers*: all that the device hands back against the layers' integer reference, exactly. A wrong stage after the layer graph shows here.
- *passes*: the outputs of the graph before a pass of the user's and after it, by the operators' references. Float32 sums in another order
  differ in their last bits; what differs by more has another meaning. A pass that drops an activation shows here.
- *float32*: the outputs of the program and those of the model in float32. Quantisation explains some noise: as much as the model has
  without the user's passes, and half as much again. A pass that calibrates or quantises badly shows here. So does an edited graph that
  computes something else than its model.
- *ONNX Runtime*, where it is asked: the same integers, of a library that shares no code with tpucc. A fault in the layers' reference itself
  would show here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from tpucc.compilation import Compilation
from tpucc.diagnostics import Diagnostic, Error, UsageError
from tpucc.driver import without_passes
from tpucc.ir import Graph
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops.evaluate import evaluate
from tpucc.runtime.batches import Arrays
from tpucc.runtime.blame import maker_of
from tpucc.runtime.check import (
    Comparison,
    calibrated_inputs,
    compare_executors,
    compare_with_reference,
    float_reference,
    random_inputs,
)
from tpucc.runtime.runtime import Runtime
from tpucc.stage_names import passes_of

ROUNDING = 1e-4
"""The difference that float32 sums in another order may make, as a share of an output's largest magnitude: a thousand roundings."""
NOISE = 1.5
"""How much more noise than without the user's passes is still explained by quantisation."""
NOISE_STAGE = "float32, beyond what quantisation explains"
"""The comparison that finds more."""


@dataclass(frozen=True)
class OutsideJudge:
    """A library that computes the same layers and shares no code with tpucc: its name, its title in messages, and the comparison with it of
    every integer that the device hands back."""

    name: str
    title: str
    compare: Callable[[Runtime, Graph, Mapping[str, AnyArray]], list[Comparison]]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first value that is not as expected: where, what was expected and found, and what made it, as far as that is known.

    `instruction` and `text` are of the machine program, `line` is the source's, `stage` the pass or the comparison that found it.
    `place` is the instruction's line in the text that was judged, as in `iris.tile:37`.
    """

    where: str
    expected: float
    found: float
    stage: str
    instruction: int | None = None
    text: str = ""
    layer: str = ""
    line: int = 0
    place: str = ""

    def __str__(self) -> str:
        made = f"; made by instruction {self.instruction:,} `{self.text}` of {self.layer}" if self.instruction is not None else ""
        line = (f", {self.place}" if self.place else "") + (f", line {self.line} of the model" if self.line else "")
        return f"{self.where}: expected {self.expected:g}, found {self.found:g} ({self.stage}){made}{line}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`equal`: every comparison holds and there are no findings. `first_difference` is that of the first comparison that fails.

    `peak_rows` is the largest number of rows of the unified buffer in use at one time. `lower_bound` is the largest number alive at one
    time; no allocation can use fewer. Both and `cycles` are 0 if no program was made. `findings` are the verifier's.
    """

    equal: bool
    first_difference: Difference | None
    cycles: int
    peak_rows: int
    lower_bound: int
    findings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes of scheduling: that an allocator found no place, and what was spilled."""
    against: str | None = None
    """The library that was compared with, too."""


def refused(error: Error) -> Verdict:
    """The verdict on a model that the user's passes or stages made no program of."""
    return Verdict(False, None, 0, 0, 0, error.diagnostics)


def judge(
    runtime: Runtime,
    compilation: Compilation | None,
    inputs: Mapping[str, npt.ArrayLike] | None = None,
    seed: int = 0,
    outside: OutsideJudge | None = None,
) -> Verdict:
    """The verdict on a program, on `inputs` or else on the calibration inputs, and on random ones that `seed` draws.

    A program without its compilation has no layers to compare with: the fast executor is compared with the plain one. Raises `InputError`
    when `inputs` don't fit, and `UsageError` where the layers, by which the `outside` judge judges, are not there.
    """
    program = runtime.program
    findings = tuple(Diagnostic(found.code, found.message) for found in verify(program))
    cases = _cases(runtime, compilation, inputs, seed)
    differences = chain(_differences(runtime, compilation, cases), _outside(runtime, compilation, cases, outside) if outside else ())
    difference = None if findings else next(differences, None)
    return Verdict(
        not findings and difference is None,
        difference,
        0 if findings else runtime.timeline.makespan,
        program.peak_rows,
        program.lower_bound_rows,
        findings,
        program.notes,
        outside.name if outside and not findings else None,
    )


def _cases(
    runtime: Runtime, compilation: Compilation | None, inputs: Mapping[str, npt.ArrayLike] | None, seed: int
) -> list[dict[str, AnyArray]]:
    """The inputs to judge on: the given or calibration ones, as many as the batch has, and random ones."""
    given = runtime.accepted(inputs) if inputs is not None else calibrated_inputs(compilation) if compilation else None
    cases = [random_inputs(runtime, seed)]
    if given is None:
        return cases
    batch = runtime.batch
    rows = {name: array if batch is None else np.resize(array, (batch, *array.shape[1:])) for name, array in given.items()}
    return [rows, *cases]


def _differences(runtime: Runtime, made: Compilation | None, cases: list[dict[str, AnyArray]]) -> Iterator[Difference]:
    """The first difference of each comparison that has one."""
    for inputs in cases:
        if made is None or made.layers is None or made.graph is None:
            comparisons = compare_executors(runtime, inputs)
        else:
            comparisons = compare_with_reference(runtime, made.layers, inputs)
        for compared in comparisons:
            if compared.unequal:
                yield _of_device(runtime.program, made, compared)
        if made is not None and (made.rewritten or made.like is not None):
            yield from _of_passes(made, inputs)
            yield from _of_noise(runtime, made, inputs)


def _outside(runtime: Runtime, made: Compilation | None, cases: list[dict[str, AnyArray]], outside: OutsideJudge) -> Iterator[Difference]:
    """The first difference of each value from the outside judge's."""
    if made is None or made.layers is None:
        raise UsageError(Diagnostic("E0515", "a program that was loaded has no layers to judge by; compile the source to see them"))
    for inputs in cases:
        for compared in outside.compare(runtime, made.layers, inputs):
            if compared.unequal:
                yield _of_device(runtime.program, made, compared, outside.title)


def _of_device(
    program: Program, made: Compilation | None, compared: Comparison, stage: str = "the layers' integer reference"
) -> Difference:
    maker = maker_of(program, compared.name, compared.index)
    place = made.places.line(maker.instruction) if maker is not None and made is not None and made.places is not None else ""
    where = f"{compared.name}{list(compared.index)}"
    return Difference(where, compared.expected, compared.got, stage, **(asdict(maker) if maker is not None else {}), place=place)


def _of_passes(made: Compilation, inputs: Arrays) -> Iterator[Difference]:
    """Outputs that a pass of the user's changes. Where a pass quantises the graph, the values before are float32: see `_of_noise`."""
    brought = {step.name for step in passes_of(made.options)} & set(made.rewritten)
    before: Graph | None = None
    for snapshot in made.snapshots:
        if not isinstance(snapshot.value, Graph):
            continue
        after = snapshot.value
        if before is not None and snapshot.stage in brought and snapshot.changed and _is_quantised(before) == _is_quantised(after):
            yield from _unequal(f"the pass {snapshot.stage}", _outputs(before, inputs), _outputs(after, inputs))
        before = after


def _is_quantised(graph: Graph) -> bool:
    return any(node.op in LAYER_REFERENCES for node in graph)


def _outputs(graph: Graph, inputs: Arrays) -> dict[str, AnyArray]:
    """The outputs for the inputs of one core."""
    part = {node.name: inputs[node.name][: node.type.shape[0]] if node.type.shape else inputs[node.name] for node in graph.inputs}
    values = evaluate(graph, part, LAYER_REFERENCES)
    return {output.name: values[output.node] for output in graph.outputs}


def _unequal(stage: str, expected: Arrays, found: Arrays) -> Iterator[Difference]:
    """The first element of each output that differs by more than rounding."""
    for name, wanted in expected.items():
        got = found[name]
        if got.shape != wanted.shape:
            yield Difference(f"{name}, of shape {list(got.shape)} instead of {list(wanted.shape)}", wanted.size, got.size, stage)
            continue
        size = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)) if wanted.dtype.kind == "f" else 0
        wrong = ~np.isclose(got, wanted, rtol=ROUNDING, atol=ROUNDING * size, equal_nan=True)
        if wrong.any():
            yield _largest(name, stage, wanted, got, wrong)


def _of_noise(runtime: Runtime, made: Compilation, inputs: Arrays) -> Iterator[Difference]:
    """Outputs with more noise against float32 than the model has without the user's passes."""
    assert made.meant is not None
    exact, found = float_reference(made.meant, inputs), runtime.run(inputs)
    try:
        plain = Runtime(without_passes(made)).run(inputs)
    except Error:
        return  # the model needs these passes to be compiled, so that there is nothing to measure by
    for name, wanted in exact.items():
        if wanted.dtype.kind != "f":
            continue
        allowed = NOISE * _noise(wanted, plain[name]) + ROUNDING * float(np.abs(wanted).max(initial=0))
        if np.isfinite(allowed) and not _noise(wanted, found[name]) <= allowed:
            error = np.abs(found[name].astype(np.float64) - wanted)
            yield _largest(name, NOISE_STAGE, wanted, found[name], error)


def _largest(name: str, stage: str, wanted: AnyArray, got: AnyArray, error: AnyArray) -> Difference:
    """The difference of two outputs where the error is largest."""
    index = place_of_largest(error)
    return Difference(f"{name}{list(index)}", float(wanted[index]), float(got[index]), stage)


def _noise(wanted: AnyArray, got: AnyArray) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(np.mean(np.square(got.astype(np.float64) - wanted), dtype=np.float64))) if wanted.size else 0.0
