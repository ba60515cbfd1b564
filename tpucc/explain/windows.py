"""The values of a run that a page shows: which instructions', and on which inputs."""

from __future__ import annotations

from tpucc.compilation import Compilation
from tpucc.explain.recording import Recording, recorded, usual_window
from tpucc.numerics import Int64
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import calibrated_inputs, random_inputs
from tpucc.runtime.runtime import Runtime


def first_part(runtime: Runtime, inputs: Arrays) -> tuple[Arrays, bool]:
    """The inputs of the first core in the first round, and whether there are other rounds."""
    rows, batch = runtime.batches.rows(inputs), next(runtime.batches.divided(inputs))
    return runtime.parts(batch)[0], rows is not None and runtime.batch is not None and rows > runtime.batch


def recording(compilation: Compilation, runtime: Runtime, window: Int64 | None = None) -> Recording | None:
    """What a page shows of a run on the calibration inputs: the usual window, or the instructions of `window`, ascending.

    Without calibration inputs there is none, unless a window is asked for: then the inputs are random.
    """
    given = calibrated_inputs(compilation)
    if window is None and given is None:
        return None
    window = usual_window(runtime.program) if window is None else window
    if not len(window):
        return None
    inputs, several = first_part(runtime, runtime.accepted(random_inputs(runtime) if given is None else given))
    origin = "random inputs" if given is None else f"the {'first batch of the ' if several else ''}calibration inputs"
    return recorded(runtime.begun(inputs), window, origin)
