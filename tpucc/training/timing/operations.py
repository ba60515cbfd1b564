"""How many operations of the vector unit an operator is, counted by computing a small example."""

from __future__ import annotations

from functools import cache

import numpy as np

from tpucc.floating.arithmetic import PORTABLE
from tpucc.floating.counting import counted
from tpucc.ops import OPS
from tpucc.ops.opdef import Defined

SEVERAL = 16
"""Values of an example's operands: NumPy's scalars aren't counted."""


@cache
def operations(op: str) -> int:
    """Operations for each value of the result or of the largest operand, whichever has more; at least one.

    The operator's float form is computed on the smallest example of several values: real values are 0.5, for which no function takes a
    branch for special values, and integers are 0. A function whose work depends on its attributes is counted with those of the example.
    """
    operator = OPS[op]
    sizes = {sum(type_.size for type_ in example.operands): example for example in reversed(operator.examples)}
    example = sizes[min([size for size in sizes if size >= SEVERAL] or sizes)]
    operands = [np.full(type_.shape, 0.5 if type_.dtype == "f32" else 0, type_.numpy) for type_ in example.operands]
    floats = operator.floats
    if isinstance(floats, Defined):
        count = counted(lambda *given: floats.function(example.attributes, given, PORTABLE), *operands)
    else:
        count = counted(lambda *given: operator.reference(example.attributes, given), *operands)
    result = operator.infer(example.attributes, example.operands)
    touched = max([1, result.size, *(type_.size for type_ in example.operands)])
    return int(max(1, -(-count // touched)))
