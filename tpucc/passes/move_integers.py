"""The host moves integers of the device as they are, where it only puts them elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpucc.ir import Node
from tpucc.layers.kinds import VIEWS
from tpucc.ops import dequantizes, quantizes
from tpucc.passes.rules import Family, Match, Rule, rule, rules_pass, variable


@rules_pass("move-integers", "moves integers on the host without making real numbers of them", level=1)
def move_integers() -> Iterator[Rule]:
    """Rewrites `quantize(move(dequantize(q)))` to `move(q)`, for chains of reshapes, transposes and slices, where scale and zero point are
    the same before and after. Then not a bit changes, and the host neither dequantises nor quantises.
    """
    quantised = Family(lambda node: quantizes(node.op))
    yield rule("moves of real numbers between integers", quantised(variable("last", lambda node: node.op in VIEWS)), _moved)


def _moved(m: Match) -> Node | None:
    """The last move, of integers that the moves before it moved; None where the integers before and after differ."""
    moves: list[Node] = []
    source = m.last
    while source.op in VIEWS:
        moves.append(source)
        (source,) = m.rewriter.operands(source)
    held = m.rewriter.operands(source)[0] if dequantizes(source.op) else source
    if held is source or held.type != replace(m.root.type, shape=held.type.shape):
        return None
    for move in reversed(moves[1:]):
        type_ = replace(m.root.type, shape=move.type.shape)
        held = m.rewriter.make(replace(move, operands=(held.name,), type=type_, holds=()))
    return replace(m.last, name=m.root.name, operands=(held.name,), type=m.root.type, holds=m.root.holds)
