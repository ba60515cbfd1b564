"""How many operations of a vector unit a function takes for each value, counted by computing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

UNCOUNTED = frozenset({np.isnan, np.isfinite, np.isinf})
"""What the tests of NaN need in software: the unit's own results have one NaN."""


class _Counting(np.ndarray[Any, Any]):
    """An array whose operations are counted, an element each: `count` of the class. What is made of it counts on."""

    count = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **settings: Any) -> Any:
        plain = [_plain(each) for each in inputs]
        if out is not None:
            settings["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*plain, **settings)
        if ufunc not in UNCOUNTED:
            _Counting.count += max(map(np.size, (result, *plain)))
        return result.view(_Counting) if isinstance(result, np.ndarray) else result


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, _Counting) else value


def counted(function: Callable[..., Any], *operands: np.ndarray[Any, Any]) -> int:
    """The operations of `function` on arrays, an element each. What it warns of is the operands' doing."""
    _Counting.count = 0
    with np.errstate(all="ignore"):
        function(*(operand.view(_Counting) for operand in operands))
    return _Counting.count
