"""A batch on several cores: each takes its part of the inputs, along their first axis, and the outputs are joined again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError, ProgramError, counted
from tpucc.ir import TensorType
from tpucc.numerics import AnyArray
from tpucc.runtime.batches import Arrays


def whole_type(name: str, part: TensorType, cores: int) -> TensorType:
    """The type of the input or output `name` of all cores, from that of one core. Raises `ProgramError` E0708 for a scalar."""
    if cores == 1:
        return part
    if not part.shape:
        raise ProgramError(Diagnostic("E0708", f"{name} is a scalar, and {counted(cores, 'core')} need a first axis to divide"))
    return replace(part, shape=(part.shape[0] * cores, *part.shape[1:]))


def parts(arrays: Arrays, types: Mapping[str, TensorType], cores: int) -> list[Arrays]:
    """One core's inputs after the other. `types` are those of the whole batch. Raises `InputError` E0451 for another shape."""
    if cores == 1:
        return [arrays]
    wrong = [name for name, type_ in types.items() if name in arrays and arrays[name].shape != type_.shape]
    if wrong:
        raise InputError([_shape_fault(name, types[name], arrays[name]) for name in wrong])
    divided = {name: np.split(arrays[name], cores) for name in types if name in arrays}
    return [{name: pieces[core] for name, pieces in divided.items()} for core in range(cores)]


def joined(results: Sequence[Arrays]) -> dict[str, AnyArray]:
    """The outputs of all cores."""
    if len(results) == 1:
        return dict(results[0])
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}


def _shape_fault(name: str, type_: TensorType, given: AnyArray) -> Diagnostic:
    return Diagnostic("E0451", f"the input {name} must be {type_.brief}, and has the shape {list(given.shape)}")
