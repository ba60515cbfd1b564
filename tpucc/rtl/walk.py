"""Walks over rows: two counters, and for each operand the offset of its row."""

from __future__ import annotations

from dataclasses import dataclass

from pyrtl import Register, WireVector, select

from tpucc.rtl.queue import counter
from tpucc.rtl.shape import COUNT_BITS


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a walk: in an `active` cycle the next follows. `ends_line`: this is the last inner step; `ends`: the last of all."""

    active: WireVector
    first: WireVector
    ends_line: WireVector
    ends: WireVector


def steps(name: str, active: WireVector, outer: WireVector, inner: WireVector) -> Steps:
    """The steps of `outer` times `inner`."""
    inside, ends_line = counter(COUNT_BITS, f"{name}_inner", active, inner)
    outside, last = counter(COUNT_BITS, f"{name}_outer", active & ends_line, outer)
    return Steps(active, (inside == 0) & (outside == 0), ends_line, ends_line & last)


def offset(name: str, of: Steps, pitch: WireVector, stride: WireVector) -> Register:
    """The offset of the present row from the first: `o · pitch + i · stride`, by additions alone."""
    bits = len(pitch)
    here, line = Register(bits, f"{name}_offset"), Register(bits, f"{name}_line")
    following = line + pitch
    here.next <<= select(of.active, select(of.ends, 0, select(of.ends_line, following, here + stride)), here)
    line.next <<= select(of.active & of.ends_line, select(of.ends, 0, following), line)
    return here
