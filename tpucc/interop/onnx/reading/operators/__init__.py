"""The operators of ONNX: one row each, a family a file."""

from __future__ import annotations

from tpucc.interop.onnx.reading.operators import (
    convolutions,
    einsum,
    elements,
    gate_functions,
    gather_elements,
    machine_learning,
    normalisation,
    places,
    products,
    quantised,
    recurrent,
    reductions,
    resizing,
    shapes,
)

FAMILIES = (
    convolutions,
    einsum,
    elements,
    gate_functions,
    gather_elements,
    machine_learning,
    normalisation,
    places,
    products,
    quantised,
    recurrent,
    reductions,
    resizing,
    shapes,
)
