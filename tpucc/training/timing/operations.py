"""How many operations of the vector unit an operator is, counted by computing it on a row of two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tpucc.floating.arithmetic import PORTABLE
from tpucc.ir import Attributes
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.ops.opdef import Defined, RuleError

UNCOUNTED = frozenset({np.isnan, np.isfinite, np.isinf})
"""What the tests of NaN need in software: the unit's own results have one NaN."""


class _Counting(np.ndarray[Any, Any]):
    """An array whose operations are counted, an element each: `count` of the class."""

    count = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **settings: Any) -> Any:
        plain = [each.view(np.ndarray) if isinstance(each, _Counting) else each for each in inputs]
        if out is not None:
            settings["out"] = tuple(each.view(np.ndarray) if isinstance(each, _Counting) else each for each in out)
        result = getattr(ufunc, method)(*plain, **settings)
        if ufunc not in UNCOUNTED:
            _Counting.count += max(np.size(result), *(np.size(each) for each in plain)) if method != "at" else np.size(plain[-1])
        return result.view(_Counting) if isinstance(result, np.ndarray) else result


@cache
def operations(op: str, attributes: Any, ranks: tuple[int, ...]) -> int:
    """Operations for each value of a result, of operands with these ranks; at least one.

    It computes the operator's float form on a row of two values, 0.5, so that no function takes a branch for special values. An operator
    that isn't defined for such a row, as those of windows and labels, counts as one operation.
    """
    operator = OPS[op]
    shapes = [(1,) * (rank - 1) + (2,) * (rank > 0) for rank in ranks]
    _Counting.count = 0
    try:
        with np.errstate(all="ignore"):
            _computed(
                operator.floats, operator.reference, attributes, [np.full(shape, 0.5, np.float32).view(_Counting) for shape in shapes]
            )
    except (ValueError, TypeError, IndexError, RuleError):
        return 1
    return max(1, -(-_Counting.count // 2))


def _computed(floats: Any, reference: Any, attributes: Attributes, operands: Sequence[AnyArray]) -> None:
    if isinstance(floats, Defined):
        floats.function(attributes, operands, PORTABLE)
    else:
        reference(attributes, operands)
