"""Checks of attributes that several operators share: whole numbers, real numbers, shapes, pairs.

The values come from the source or from a graph in text form, and may be anything that can be written there; none of these functions
trusts a type. Messages show a wrong value only when it is short and harmless.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tpucc.ops.opdef import RuleError
from tpucc.ops.rules import MAX_SIZE, require_sizes

FLOAT32_MAX = float(np.finfo(np.float32).max)
FLOAT32_NORMAL = float(np.finfo(np.float32).tiny)


def shown(value: object) -> str:
    """`, found 2.5`: a wrong value at the end of a message, or nothing when it is long or would upset the text."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**18:
        return ", found a number of more than 18 digits"
    text = repr(value) if isinstance(value, bool | int | float | str | None) else f"a {type(value).__name__}"
    return f", found {text}" if len(text) <= 40 and not set("{}") & set(text) else ""


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def require_integer(value: Any, name: str, low: int, high: int = MAX_SIZE) -> int:
    """The attribute `name` as an integer in low…high. Raises `RuleError`."""
    if not is_integer(value):
        raise RuleError("E0306", f"{name} must be an integer{shown(value)}", about=(name,))
    if not low <= value <= high:
        bounds = f"at least {low}" if value < low else f"at most {high:,}"
        raise RuleError("E0307", f"{name} must be {bounds}{shown(value)}", about=(name,))
    return int(value)


def require_number(value: Any, name: str) -> float:
    """The attribute `name` as a finite float32 number; integers are numbers, booleans aren't. Raises `RuleError`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RuleError("E0306", f"{name} must be a number{shown(value)}", about=(name,))
    if not (math.isfinite(value) if isinstance(value, float) else True) or abs(value) > FLOAT32_MAX:
        raise RuleError("E0307", f"{name} must be a finite float32 number{shown(value)}", about=(name,))
    return float(value)


def require_flag(value: object, name: str) -> bool:
    """The attribute `name` as True or False. Raises `RuleError`."""
    if not isinstance(value, bool):
        raise RuleError("E0306", f"{name} must be True or False{shown(value)}", about=(name,))
    return value


def require_integers(value: Any, name: str) -> tuple[int, ...]:
    """The attribute `name`, an integer or a list of them, as a tuple. Raises `RuleError`."""
    if is_integer(value):
        return (value,)
    if not isinstance(value, tuple | list) or not all(map(is_integer, value)):
        raise RuleError("E0306", f"{name} must be a list of integers{shown(value)}", about=(name,))
    return tuple(value)


def require_shape(value: Any, name: str = "shape") -> tuple[int, ...]:
    """The attribute `name` as a shape: sizes of at least 1; a lone integer is one size, as in NumPy. Raises `RuleError`."""
    shape = require_integers(value, name)
    require_sizes(shape, name)
    return shape


def require_pair(value: Any, name: str, high: int) -> tuple[int, int]:
    """The attribute `name` as (height, width), both in 1…high; a lone integer stands for both. Raises `RuleError`."""
    sizes = require_integers(value, name)
    if not is_integer(value) and len(sizes) != 2:
        raise RuleError("E0306", f"{name} must be an integer or a pair (height, width)", about=(name,))
    height, width = (require_integer(size, name, 1, high) for size in (sizes[0], sizes[-1]))
    return height, width
