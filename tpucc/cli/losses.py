"""Where accuracy is lost: the measurements of layers that several commands show, and the errors where there is nothing to measure on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tpucc.api import Executable
from tpucc.cli.labelled import rows_beside
from tpucc.compilation import Compilation
from tpucc.data.archive import naming
from tpucc.diagnostics import Diagnostic, InputError, UsageError
from tpucc.explain.fidelity import fidelity
from tpucc.explain.layer_error import LayerError
from tpucc.explain.sensitivity import Losses, losses
from tpucc.interop.sources import held_out_file
from tpucc.numerics import AnyArray
from tpucc.passes.input_arrays import checked_inputs
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import calibrated_inputs
from tpucc.training.labelled import without_labels


def layer_errors(exe: Executable, model: Path) -> tuple[LayerError, ...]:
    """The layers' errors on the calibration inputs. Raises `UsageError` E0533 when there is nothing to measure them on."""
    errors = () if exe.compilation is None else fidelity(exe.compilation, exe.runtime)
    if not errors:
        raise _nothing_to_measure(exe, model)
    return errors


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to measure on: the arrays, their labels if they have some, and in words which rows they are. `notes` say why not others."""

    arrays: Arrays | None
    labels: AnyArray | None
    what: str
    notes: tuple[str, ...] = ()


def measured_losses(exe: Executable, model: Path) -> tuple[Losses, Rows]:
    """What each layer costs, on the rows beside the source, else on the calibration inputs; and which rows these are.

    Raises `UsageError` E0533 when there are neither, or nothing is quantised, and `InputError` where labelled rows don't fit.
    """
    if exe.compilation is not None:
        rows = _rows(exe.compilation, model)
        if rows.arrays is not None:
            with naming(held_out_file(model)):
                found = losses(exe.compilation, exe.runtime, rows.arrays, rows.labels)
            if found is not None:
                return found, rows
    raise _nothing_to_measure(exe, model)


def _rows(compilation: Compilation, model: Path) -> Rows:
    """The rows beside the source. Of those without labels, which may be for something else, only the inputs are taken, and none where
    they don't fit: then the calibration inputs."""
    others = Rows(calibrated_inputs(compilation), None, "the calibration inputs")
    beside, place = rows_beside(model), held_out_file(model)
    if beside is None or compilation.graph is None:
        return others
    arrays, labels = beside
    if labels is not None:
        return Rows(arrays, labels, place.name)
    inputs = compilation.graph.inputs
    try:
        taken = checked_inputs(inputs, {node.name: arrays[node.name] for node in inputs if node.name in arrays}, "file")
        return Rows(taken, None, place.name, notes=(without_labels(place, arrays),))
    except InputError as error:
        return replace(others, notes=(f"{place.name} isn't measured on: {error.diagnostics[0].message}",))


def _nothing_to_measure(exe: Executable, model: Path) -> UsageError:
    if exe.compilation is None:
        why, mend = f"{model.name} is a program, which has no float32 values to compare with", "name its source"
    elif exe.compilation.calibration is None:
        why, mend = (
            f"{model.name} has no examples to measure its layers on",
            'name some: calibration "FILE.npz" in the source, or --calibrate',
        )
    else:
        why, mend = f"no layer of {model.name} runs on the device", "there is nothing to quantise"
    return UsageError(Diagnostic("E0533", why, help=(mend,)))
