"""Where accuracy is lost: the measurements of layers that several commands show, and the errors where there is nothing to measure on."""

from __future__ import annotations

from pathlib import Path

from tpucc.api import Executable
from tpucc.cli.labelled import held_out
from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.interop.archive import naming
from tpucc.interop.reads import held_out_file
from tpucc.layers.error import LayerError
from tpucc.runtime.check import calibrated_inputs
from tpucc.runtime.fidelity import fidelity
from tpucc.runtime.sensitivity import Losses, losses


def layer_errors(exe: Executable, model: Path) -> tuple[LayerError, ...]:
    """The layers' errors on the calibration inputs. Raises `UsageError` E0533 when there is nothing to measure them on."""
    errors = () if exe.compilation is None else fidelity(exe.compilation, exe.runtime)
    if not errors:
        raise _nothing_to_measure(exe, model)
    return errors


def measured_losses(exe: Executable, model: Path) -> tuple[Losses, str]:
    """What each layer costs, on the labelled rows beside the source, else on the calibration inputs; and in words which these are.

    Raises `UsageError` E0533 when there are neither, or nothing is quantised.
    """
    if exe.compilation is not None:
        beside = held_out(model)
        inputs, labels = beside if beside is not None else (calibrated_inputs(exe.compilation), None)
        place = held_out_file(model)
        if inputs is not None:
            with naming(place):
                found = losses(exe.compilation, exe.runtime, inputs, labels)
            if found is not None:
                return found, "the calibration inputs" if labels is None else place.name
    raise _nothing_to_measure(exe, model)


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
