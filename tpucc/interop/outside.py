"""The outside judge: ONNX Runtime, which shares no code with tpucc, computes the layers of a model as they are exported.

It gets the integers that enter each part of the device's work, and must give those that leave it, bit for bit. The host's steps between
them are in float32, in which two libraries differ in their last bits: they are not ONNX Runtime's to judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from tpucc.arguments import no_choice
from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.interop.onnx.writing.file import OnnxModel, onnx_bytes
from tpucc.interop.onnx.writing.graph import onnx_model
from tpucc.ir import Graph
from tpucc.layers.partition import partition
from tpucc.layers.reference import LAYER_REFERENCES
from tpucc.numerics import AnyArray
from tpucc.onnxruntime import session
from tpucc.ops.evaluate import evaluate
from tpucc.runtime.check import Comparison, compared, parts_of
from tpucc.runtime.judge import OutsideJudge
from tpucc.runtime.runtime import Runtime

Against = Literal["onnxruntime"]
"""A library that computes the same layers."""
LIBRARIES: tuple[Against, ...] = get_args(Against)
THREADS = 1
"""Of a session: the bits are the same with any number, and a model's layers are small."""


class Session:
    """ONNX Runtime with a model. Raises `UsageError` E1020 where it isn't installed.

    It computes what the file says: its optimizer would put other operators in the place of some, which round in another way.
    """

    def __init__(self, model: OnnxModel, data: bytes | None = None) -> None:
        self._outputs = list(model.outputs)
        try:
            self._session = session(data or onnx_bytes(model), THREADS, optimised=False)
        except ImportError as error:
            text, mend = (
                f"this needs a package that isn't installed: {error.name}",
                "python -m pip install 'tpucc[onnxruntime]' installs it",
            )
            raise UsageError(Diagnostic("E1020", text, help=(mend,))) from None

    def run(self, inputs: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
        """An array for each output, from one for each input."""
        arrays = {name: np.asarray(value) for name, value in inputs.items()}  # of NumPy's scalars it knows none
        return dict(zip(self._outputs, self._session.run(self._outputs, arrays), strict=True))


def compare_with_onnxruntime(runtime: Runtime, layers: Graph, inputs: Mapping[str, AnyArray]) -> list[Comparison]:
    """Every integer that the device hands back, against ONNX Runtime. `inputs` have any batch that `run` takes."""
    device = partition(layers).device
    names = [port.name for port in runtime.program.outputs if port.name in device.output_nodes]
    if not names:
        return []
    judge, entering = Session(onnx_model(device)), [node.name for node in device.inputs]
    found: list[tuple[Mapping[str, AnyArray], Mapping[str, AnyArray]]] = []
    for part in parts_of(runtime, inputs):
        values = evaluate(layers, part, LAYER_REFERENCES, keep=entering)
        wanted = dict(zip((output.node for output in device.outputs), judge.run({n: values[n] for n in entering}).values(), strict=True))
        found.append((wanted, runtime.ports(part)))
    return [compared(name, [(wanted[name], got[name]) for wanted, got in found]) for name in names]


def outside_judge(against: Against | None) -> OutsideJudge | None:
    """The judge of this name, or none where none is asked for. Raises `UsageError` E0529 for another name."""
    if against is None:
        return None
    if against not in LIBRARIES:
        raise no_choice("judge's against", LIBRARIES, against)
    return OutsideJudge(against, "ONNX Runtime", compare_with_onnxruntime)
