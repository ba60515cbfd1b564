"""How many operations of the vector unit an operator is, counted by computing a small example."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tpucc.floating.arithmetic import PORTABLE
from tpucc.ops import OPS
from tpucc.ops.opdef import Defined

UNCOUNTED = frozenset({np.isnan, np.isfinite, np.isinf})
"""What the tests of NaN need in software: the unit's own results have one NaN."""

SEVERAL = 16
"""Values of an example's operands: NumPy's scalars aren't counted."""


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


@cache
def operations(op: str) -> int:
    """Operations for each value of the result or of the largest operand, whichever has more; at least one.

    The operator's float form is computed on the smallest example of several values: real values are 0.5, for which no function takes a
    branch for special values, and integers are 0. A function whose work depends on its attributes is counted with those of the example.
    """
    operator = OPS[op]
    sizes = {sum(type_.size for type_ in example.operands): example for example in reversed(operator.examples)}
    example = sizes[min([size for size in sizes if size >= SEVERAL] or sizes)]
    operands = [np.full(type_.shape, 0.5 if type_.dtype == "f32" else 0, type_.numpy).view(_Counting) for type_ in example.operands]
    _Counting.count = 0
    with np.errstate(all="ignore"):
        if isinstance(operator.floats, Defined):
            operator.floats.function(example.attributes, operands, PORTABLE)
        else:
            operator.reference(example.attributes, operands)
    result = operator.infer(example.attributes, example.operands)
    touched = max([1, result.size, *(type_.size for type_ in example.operands)])
    return int(max(1, -(-_Counting.count // touched)))
