"""The verdict on a model whose compilation users have a hand in: by passes of their own, or by editing the text of a stage.

Two comparisons more than `tpucc.runtime.judge` makes, each with a fault that only it finds:

- *passes*: the outputs of the graph before a pass of the user's and after it, by the operators' references. Float32 sums in another order
  differ in their last bits; what differs by more has another meaning. A pass that drops an activation shows here.
- *float32*: the outputs of the program and those of the model in float32. Quantisation explains some noise: as much as the model has
  without the user's passes, and half as much again. A pass in the place of one of tpucc's may do less than that: so it may have as much
  noise as the model has without both. A pass that calibrates or quantises badly shows here. So does an edited graph that computes something
  else than its model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tpucc.back_end import BackEnd
from tpucc.compilation import Compilation, Recorder, State
from tpucc.diagnostics import Error
from tpucc.driver import back_end, choose_for_stream, drafts_with_room
from tpucc.ir import Graph
from tpucc.isa.program import Program
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.numerics import AnyArray, place_of_largest
from tpucc.ops.evaluate import evaluate
from tpucc.passes.pipeline import PASSES, pipeline
from tpucc.runtime import judge as core
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import float_reference
from tpucc.runtime.judge import Difference, OutsideJudge, Verdict
from tpucc.runtime.runtime import Runtime
from tpucc.stage_names import passes_of

ROUNDING = 1e-4
"""The difference that float32 sums in another order may make, as a share of an output's largest magnitude: a thousand roundings."""
NOISE = 1.5
"""How much more noise than without the user's passes is still explained by quantisation."""
NOISE_STAGE = "float32, beyond what quantisation explains"
"""The comparison that finds more."""


def judge(
    runtime: Runtime,
    compilation: Compilation | None,
    inputs: Mapping[str, npt.ArrayLike] | None = None,
    seed: int = 0,
    outside: OutsideJudge | None = None,
) -> Verdict:
    """As `tpucc.runtime.judge.judge`, with both comparisons where they say something."""
    return core.judge(runtime, compilation, inputs, seed, outside, _differences)


def _differences(runtime: Runtime, made: Compilation, inputs: Arrays) -> Iterator[Difference]:
    if made.rewritten or made.like is not None:
        yield from _of_passes(made, inputs)
        yield from _of_noise(runtime, made, inputs)


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
        plain = [Runtime(_without_passes(made, omit)).run(inputs) for omit in dict.fromkeys((frozenset[str](), _replaced(made)))]
    except Error:
        return  # the model needs these passes to be compiled, so that there is nothing to measure by
    for name, wanted in exact.items():
        if wanted.dtype.kind != "f":
            continue
        allowed = NOISE * max(_noise(wanted, each[name]) for each in plain) + ROUNDING * float(np.abs(wanted).max(initial=0))
        if np.isfinite(allowed) and not _noise(wanted, found[name]) <= allowed:
            error = np.abs(found[name].astype(np.float64) - wanted)
            yield _largest(name, NOISE_STAGE, wanted, found[name], error)


def _replaced(made: Compilation) -> frozenset[str]:
    """The passes of tpucc's that can be left out, and in whose place passes of the user's stand."""
    return frozenset({step.name for step in PASSES if step.level} & {step.name for step in made.options.passes})


def _without_passes(made: Compilation, omit: frozenset[str]) -> Program:
    """The same model, compiled without the user's passes and stages, and without the passes `omit`, to compare theirs with.

    Raises the errors of `compile_source`: a model may need these passes or stages.
    """
    include = made.options.include & {step.name for step in PASSES}
    names = {step.name for step in pipeline(made.options.level, (), {}, (), include)}
    settings = {name: values for name, values in made.options.settings.items() if name in names}
    chosen = replace(made.options, omit=(made.options.omit | omit) & names, include=include, settings=settings)
    options = replace(chosen, passes=(), stages=BackEnd(), stop_after=None)
    state = State(made.source, options, made.model, made.meant, made.calibration)
    assert made.meant is not None
    choose_for_stream(state, made.meant)
    recorder = Recorder(None, None)
    back_end(state, recorder, drafts_with_room(state, made.meant, recorder))
    assert state.program is not None
    return state.program


def _largest(name: str, stage: str, wanted: AnyArray, got: AnyArray, error: AnyArray) -> Difference:
    """The difference of two outputs where the error is largest."""
    index = place_of_largest(error)
    return Difference(f"{name}{list(index)}", float(wanted[index]), float(got[index]), stage)


def _noise(wanted: AnyArray, got: AnyArray) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(np.mean(np.square(got.astype(np.float64) - wanted), dtype=np.float64))) if wanted.size else 0.0
