"""Of which function a table of 256 integers is: the first whose table, at the same scales and zero points, has the same entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tpucc.ir.dtypes import I8
from tpucc.ir.types import Quantisation
from tpucc.layers.parameters import function_table
from tpucc.numerics import DeviceInts, Float64, Int64
from tpucc.ops import OPS
from tpucc.ops.opdef import Clamp, Table

FUNCTIONS: Mapping[str, str] = {
    "Relu": "relu",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Swish": "silu",
    "Gelu": "gelu",
    "HardSwish": "hard_swish",
    "Elu": "elu",
    "Exp": "exp",
    "Abs": "abs",
}
"""ONNX's operators without attributes whose layers may be tables, and tpucc's."""
SCALES = 2.0**-40, 2.0**20
"""Between which the scale of a table's input is sought."""
STEPS = 60
"""Halvings of this range: then its ends are neighbours in float32."""


def function_of(table: DeviceInts, x: Quantisation, y: Quantisation) -> str | None:
    """ONNX's operator that has this table, x and y being how its input and its result are held; None where none has."""
    return next((op for op in FUNCTIONS if np.array_equal(_table(op, x, y), table)), None)


def function_and_scales(table: DeviceInts, zero: int, y: Quantisation) -> tuple[str, float, float] | None:
    """Likewise, and the lowest and highest scale of an input of which only the zero point is known, that give this table."""
    return next(_found(table, zero, y), None)


def _found(table: DeviceInts, zero: int, y: Quantisation) -> Iterator[tuple[str, float, float]]:
    above = (I8.table_inputs > zero).astype(np.int64)
    for op in FUNCTIONS:
        for signs in (above, 2 * above - 1):  # of sigmoid and tanh all entries say more; gelu and silu fall below 0 before they rise
            low, high = (_end(op, zero, y, int(signs @ table) + more, signs) for more in (0, 1))
            if np.array_equal(_table(op, Quantisation((low + high) / 2, zero), y), table):
                yield op, low, high


def _end(op: str, zero: int, y: Quantisation, total: int, signs: Int64) -> float:
    """The smallest scale for which the entries above the zero point, less those below, add up to this or more: they grow with the scale."""
    low, high = SCALES
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        enough = signs @ _table(op, Quantisation(middle, zero), y) >= total
        low, high = (low, middle) if enough else (middle, high)
    return high


def _table(op: str, x: Quantisation, y: Quantisation) -> DeviceInts:
    return function_table(lambda values: _function(op, values), x, y, I8)


def _function(op: str, values: Float64) -> Float64:
    operator = OPS[FUNCTIONS[op]]
    attributes = operator.attributes()
    match operator.legalisation:
        case Table(function):
            return function(attributes, values)
        case Clamp(bounds):
            return np.clip(values, *bounds(attributes))
    raise AssertionError(f"{op} has no table")
