"""Integers of the source that are only moved: the host moves them as they are, and the device holds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tpucc.ir import Node, TensorType, f32
from tpucc.ir.dtypes import INTEGER_FORMATS
from tpucc.layers.kinds import VIEWS
from tpucc.ops import dequantizes, facts_of, quantizes
from tpucc.ops.facts import UNCHANGED
from tpucc.ops.names import dequantize
from tpucc.passes.explicit_quantisation import holding
from tpucc.passes.rules import Family, Match, Rule, called, rule, rules_pass, variable


@rules_pass("move-integers", "moves integers on the host without making real numbers of them", level=1)
def move_integers() -> Iterator[Rule]:
    """Rewrites `quantize(move(dequantize(q)))` to `move(q)`, for chains of reshapes, transposes and slices, where scale and zero point are
    the same before and after. Then not a bit changes, and the host neither dequantises nor quantises.
    """
    quantised = Family(quantizes)
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


# `dequantize` moves before what moves its integers, so that the device holds them, as it holds every value.
#
# The device moves values that it holds. Integers that the source quantised, moved and dequantised are such values; the operators on them
# are not, since the device has no operator on integers as such.


@rules_pass("hoist-dequantize", "moves dequantize before operators that only move values", level=0)
def hoist_dequantize() -> Iterator[Rule]:
    """Rewrites `dequantize(m(q, …))` to `m(dequantize(q), …)` for operators `m` that only move values, through chains of them too.

    Other readers of the integers still read the integers.
    """
    boundary, move = Family(dequantizes), Family(_moves)
    yield rule("a dequantize of moved integers", boundary(called("move", move())), _hoisted)


def _hoisted(m: Match) -> Node:
    """The move of real values. The chain of moves before it may be long, so that it is walked without recursion."""
    reals: dict[str, str] = m.rewriter.once(("reals", m.root.attributes), dict)
    waiting = [*m.rewriter.operands(m.move)]
    while waiting:
        integers = waiting.pop()
        before = m.rewriter.operands(integers) if _moves(integers.op) else ()
        if any(each.name not in reals for each in before):
            waiting += (integers, *before)
        elif integers.name not in reals:
            reals[integers.name] = _real(m, integers, reals)
    return replace(m.move, name=m.root.name, operands=tuple(reals[name] for name in m.move.operands), type=_held(m.move))


def _real(m: Match, integers: Node, reals: Mapping[str, str]) -> str:
    """The name of the real values of some integers: the same move of real values, or a `dequantize`."""
    if _moves(integers.op):
        operands = tuple(reals[name] for name in integers.operands)
        return m.rewriter.make(replace(integers, operands=operands, type=_held(integers))).name
    type_ = f32(*integers.type.shape)
    return m.rewriter.make(dequantize.node(integers.name, (integers.name,), m.root.attributes, type_, integers.origin)).name


def _moves(op: str) -> bool:
    return facts_of(op).values in UNCHANGED


def _held(move: Node) -> TensorType:
    """The type of moved real values, which the device holds as the source says."""
    type_, quantisation = f32(*move.type.shape), move.type.quantisation
    return type_ if quantisation is None else holding(type_, quantisation, INTEGER_FORMATS[move.type.dtype])
