"""The steps of a prepared program: what is left of its instructions once rows, tiles and parameter blocks are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from tpucc.isa.formats import format_of
from tpucc.sim.apply import Applied
from tpucc.sim.fast.product import Product, Scratch
from tpucc.sim.machine import Machine, Rows


class Step(Protocol):
    """Something that changes the machine."""

    def run(self, machine: Machine, scratch: Scratch) -> None: ...


@dataclass(frozen=True, eq=False, slots=True)
class Products:
    """The products of one group. When some result overwrites some input, all products come before all results."""

    products: tuple[Product, ...]
    overlapping: bool

    def run(self, machine: Machine, scratch: Scratch) -> None:
        if self.overlapping:
            for product, results in [(product, product.multiply(machine, scratch)) for product in self.products]:
                product.finish(machine, results)
            return
        for product in self.products:
            product.finish(machine, product.multiply(machine, scratch))


@dataclass(frozen=True, eq=False, slots=True)
class Single:
    """One instruction that fits no group, or several vector instructions that continue each other's rows."""

    action: Applied
    elementwise: bool

    def run(self, machine: Machine, scratch: Scratch) -> None:
        self.action.run(machine)

    def joined(self, after: Single) -> Single | None:
        """This instruction and the one after it as one, or None when that isn't the same.

        Both must work element by element. Every operand must go on where this one's ends, and no source may overlap the result unless it
        is the same rows (reading all sources before writing any result is then the same as taking turns).
        """
        own, other = self.action, after.action
        if not (self.elementwise and after.elementwise) or _kind(own) != _kind(other):
            return None
        step = format_of(own.flags).bytes_per_value
        sources = [_continued(rows, following, step) for (_, rows), (_, following) in zip(own.reads, other.reads, strict=True)]
        dest = _continued(own.writes[1], other.writes[1], step)
        if dest is None or not all(rows is not None and _apart(rows, dest) for rows in sources):
            return None
        reads = tuple((place, rows) for (place, _), rows in zip(own.reads, sources, strict=True) if rows is not None)
        return Single(replace(own, reads=reads, writes=(own.writes[0], dest)), True)


def _kind(action: Applied) -> tuple[object, ...]:
    return action.meaning, action.flags, action.block_index, [place for place, _ in action.reads]


def _continued(first: Rows, second: Rows, step: int) -> slice | None:
    """Two stretches of rows, `step` from one to the next, as one, when the second begins where the first ends."""
    if not (isinstance(first, slice) and isinstance(second, slice)):
        return None
    if (first.step or 1) != step or (second.step or 1) != step or first.stop != second.start:
        return None
    return slice(first.start, second.stop, step)


def _apart(source: slice, dest: slice) -> bool:
    return bool(source.start == dest.start or source.stop <= dest.start or dest.stop <= source.start)
