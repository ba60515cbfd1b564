"""The function `quantized` of a program that puts values on grids, as quantised networks of other tools do.

`quantized(x, scale, zero_point)` is `dequantize(quantize(x, scale, zero_point))`, the nearest value that the device's integers stand for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tpucc.interop.decompile.program import Body, Function, Step, Value

FEWEST = 3
"""Roundings of a program that has a function for them."""


def share_roundings(body: Body, values: Iterator[int]) -> None:
    """Makes calls of one function of the pairs `dequantize(quantize(x))` of a body, if it has several."""
    readers = Counter(operand for step in body.steps for operand in step.operands)
    readers.update(body.results)
    made = {step.results[0]: step for step in body.steps if step.op == "quantize" and readers[step.results[0]] == 1}
    lasts = [step for step in body.steps if step.op == "dequantize" and step.operands[0] in made]
    if len(lasts) < FEWEST:
        return
    pairs = [(made[last.operands[0]], last) for last in lasts if isinstance(last.operands[0], Value)]
    function = Function(_rounding(pairs, values), rounds=True)
    calls: dict[Value, Step] = {}
    begun = 0
    for first, last in pairs:
        environments = range(begun, begun := begun + len(first.attributes))
        calls[first.results[0]] = Step("", first.operands, last.results, (), function, tuple(environments))
        if not isinstance(first.operands[0], Value):  # a weight has its name where it is declared
            body.hints[last.results[0]] = ("",) * len(environments)
    dropped = {last.results[0] for last in lasts}
    body.steps = [calls.get(step.results[0], step) for step in body.steps if step.results[0] not in dropped]


def _rounding(pairs: Sequence[tuple[Step, Step]], values: Iterator[int]) -> Body:
    """The body of the function. Its values have any shape, so it notes none."""
    entry, integers, result = (Value(next(values)) for _ in range(3))
    scales = tuple(attributes for first, _ in pairs for attributes in first.attributes)
    plain = tuple(attributes for _, last in pairs for attributes in last.attributes)
    steps = [Step("quantize", (entry,), (integers,), scales), Step("dequantize", (integers,), (result,), plain)]
    inner = (entry, integers, result)
    times = len(scales)
    return Body((entry,), steps, (result,), dict.fromkeys(inner, ((),) * times), dict.fromkeys(inner, ("",) * times))
