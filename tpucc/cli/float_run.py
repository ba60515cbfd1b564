"""`tpucc run MODEL.tpu --target tpu_v2`: a model executed by the training machine, in bfloat16 and float32."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tpucc.cli.labelled import given_arrays, rows_beside
from tpucc.cli.options import refuse_given
from tpucc.cli.progress import Progress
from tpucc.data.archive import naming, npz_bytes
from tpucc.data.sources import bind_weights
from tpucc.diagnostics import CheckError, Diagnostic, UsageError, counted, printable
from tpucc.driver import front_end
from tpucc.explain.quality import Measure, score
from tpucc.explain.tables import wrapped
from tpucc.interop.sources import held_out_file, read_source
from tpucc.numerics import AnyArray
from tpucc.options import Options
from tpucc.output_files import write_file
from tpucc.runtime.batches import Batches
from tpucc.runtime.inputs import accepted
from tpucc.sim.durations import duration
from tpucc.target import Target
from tpucc.training.inference import Inference
from tpucc.training.start import knowing
from tpucc.training_page import measured

USED = ("model", "target", "overrides", "params", "weights", "input_file", "output_file", "check", "as_json", "quiet")
"""The parameters of `run` that mean something for a run in floats."""


def run_in_floats(
    model: Path,
    target: Target,
    given: Mapping[str, Any],
    input_file: Path | None,
    output_file: Path | None,
    check: bool,
    progress: Progress,
) -> dict[str, Any]:
    """Runs a model on the given inputs, or on the held-out set beside the source; a summary of it.

    Raises `UsageError` E0529 where there are no inputs, `CheckError` E0910 where an output differs from the reference, and what `Inference`
    raises.
    """
    refuse_given(lambda name: name not in USED, "has no effect on a run in floats, which --target asks for")
    source = read_source(model)
    made = front_end(source, Options(params=given["params"]))
    bound = bind_weights(made, model.parent, given["weights"], source)
    progress.stage("make the program")
    with knowing(source):
        inference = Inference(made.graph, bound, target)
    place, (arrays, labels) = _inputs(model, input_file, inference.batches)
    with naming(place):
        inputs = accepted(inference.batches, arrays)
    progress.stage("execute")
    outputs = inference.run(inputs)
    if check:
        _require_equal(outputs, inference.reference(inputs))
    if output_file is not None:
        write_file(output_file, npz_bytes(outputs))
    scores: dict[Measure, float] = {}
    if labels is not None:
        first = made.graph.outputs[0]
        scores = score(made.graph[first.node].type, labels, outputs[first.name])
    device = inference.device
    return {
        "model": made.graph.name,
        "target": target.name,
        "inputs": place.name,
        "rows": max((len(array) for array in inputs.values() if array.ndim), default=1),
        "rounds": inference.rounds(inputs),
        "instructions": len(device.lowered.program.instructions),
        "cycles": device.cycles,
        "seconds": device.seconds,
        "outputs": {name: f"{array.dtype.name}{list(array.shape)}" for name, array in outputs.items()},
        **{str(name): value for name, value in scores.items()},
        **({"check": "equal"} if check else {}),
    }


def summary_text(summary: Mapping[str, Any]) -> str:
    """The summary of a run for people."""
    where = f"{summary['model']} on 1 core of {summary['target']}: {counted(summary['rows'], 'row')} of {summary['inputs']}"
    time = f"{counted(summary['instructions'], 'instruction')}, {summary['cycles']:,} cycles, {duration(summary['seconds'])}"
    lines = [printable(f"{where} in {counted(summary['rounds'], 'round')}, each of {time}")]
    lines += [printable(f"{name}: {kind}") for name, kind in summary["outputs"].items()]
    if found := measured({name: summary[name] for name in ("accuracy", "rmse") if name in summary}):
        lines.append(f"right: {found}" if "accuracy" in summary else found)
    lines += ["check: all bits are those of the reference"] if "check" in summary else []
    return "\n".join(wrapped(line, "  ") for line in lines)


def _inputs(model: Path, file: Path | None, batches: Batches) -> tuple[Path, tuple[dict[str, AnyArray], AnyArray | None]]:
    """The file of the inputs, its arrays, and their labels if it has some."""
    if file is not None:
        return file, given_arrays(file, batches)
    found = rows_beside(model)
    if found is None:
        mend = "--input X.npz has an array for each input of the model, by name"
        raise UsageError(Diagnostic("E0529", f"there are no inputs: no {held_out_file(model).name} lies beside the source", help=(mend,)))
    return held_out_file(model), found


def _require_equal(outputs: Mapping[str, AnyArray], wanted: Mapping[str, AnyArray]) -> None:
    wrong = [name for name, array in outputs.items() if array.tobytes() != wanted[name].tobytes()]
    if wrong:
        raise CheckError([Diagnostic("E0910", f"{printable(name)} differs from the float reference") for name in wrong])
