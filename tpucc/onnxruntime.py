"""Sessions of ONNX Runtime: all that tpucc makes, for the backend and for the outside judge.

VNNI are instructions of newer processors for 8-bit products. Without them ONNX Runtime adds two products of unsigned values and signed
weights in 16 bits, and saturates. Products of signed by signed and of unsigned by unsigned integers are exact on every processor.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def session(model: bytes | Path, threads: int, optimised: bool) -> Any:
    """The session of a model, its bytes or its file, on the processor. It has a `run` of the outputs' names and the inputs by name.

    With 0 `threads` ONNX Runtime chooses. `optimised`: its optimizer may put other operators in the place of some, which may round in
    another way; without, it computes what the file says. Raises `ImportError` where the package isn't installed.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.add_session_config_entry("session.qdqisint8allowed", "1")  # else its optimizer makes signed values unsigned, but no weights
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
