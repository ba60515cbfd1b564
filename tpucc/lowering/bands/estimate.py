"""The cost of a run that is computed in bands: rows of the unified buffer, and cycles.

The steps are the steps that lowering will make: the nodes, the copies that get a border (`tpucc.lowering.tensors`), and the copies that put
the bands together. The estimate is for one image of the batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tpucc.ir import Node
from tpucc.layers.kinds import Sides
from tpucc.lowering.bands.maps import Lines
from tpucc.lowering.bands.run import Band, Run, Supply, covering, owners
from tpucc.lowering.bands.sizes import ImageSizes
from tpucc.lowering.cost import costs_on
from tpucc.lowering.liveness import largest_sum_alive
from tpucc.lowering.tensors import NO_SIDES, widest


@dataclass(frozen=True, slots=True)
class StepCost:
    """One step: the rows of each value that it touches, the rows that one instruction works on, and its cycles."""

    touched: Mapping[Hashable, int]
    at_once: int = 0
    cycles: int = 0


@dataclass(frozen=True)
class RunContext:
    """A run with its surroundings.

    `supply` has the pieces of the entries that earlier runs compute, `whole` the rows of a column block of the entries that the device has
    whole. `joined` has the exits that must be whole on the device, each with its readers. `passing` is the number of rows of values that
    are computed before the run and read after it.
    """

    sizes: ImageSizes
    run: Run
    supply: Supply
    whole: Mapping[str, int]
    joined: Mapping[str, tuple[Node, ...]]
    passing: int


@dataclass(frozen=True)
class Estimate:
    """A run in bands."""

    context: RunContext
    bands: tuple[Band, ...]

    @cached_property
    def step_costs(self) -> tuple[StepCost, ...]:
        run = self.context.run
        found = [self._entries(run.device_entries)]
        for number in range(len(self.bands)):
            _Steps(self, number, found).add()
        found += [self.join(name, readers) for name, readers in self.context.joined.items()]
        found.append(self._entries(name for name in run.device_entries if run.is_read_on_device(name)))
        return tuple(found)

    @cached_property
    def pieces(self) -> Supply:
        """The pieces of the exits."""
        return self.context.run.supply(self.bands)

    @cached_property
    def cycles(self) -> int:
        return sum(step.cycles for step in self.step_costs)

    @cached_property
    def at_once(self) -> int:
        """The largest number of rows that one instruction works on."""
        return max(step.at_once for step in self.step_costs)

    @cached_property
    def live(self) -> int:
        """The largest number of rows alive at one time."""
        return self.context.passing + largest_sum_alive([step.touched for step in self.step_costs])

    @property
    def lines(self) -> int:
        """Lines of the last exit in the largest band."""
        return max(last - first for first, last in (band.pieces[self.context.run.exits[-1].name] for band in self.bands))

    @property
    def repeated(self) -> float:
        """Rows that are computed again, as a share of all."""
        computed = sum(self.context.sizes.rows(node.name, band.lines[node.name]) for band in self.bands for node in self.context.run.nodes)
        return computed / sum(self.context.sizes.all_rows(node.name) for node in self.context.run.nodes) - 1

    @cached_property
    def supplied(self) -> Mapping[tuple[str, int], int]:
        """The rows of a column block of each piece of the entries, with the border for the bands that read the piece without a copy."""
        borders = {(name, at): piece.border for name, pieces in self.context.supply.items() for at, piece in enumerate(pieces)}
        for band in self.bands if borders else ():
            for node in band.nodes:
                name, (lines, *_) = node.operands[0], band.readings[node.name].lines
                pieces = self.context.supply.get(name, ())
                at = covering(pieces, lines) if lines is not None else None
                if at is not None and pieces[at].has == lines:
                    borders[name, at] = widest((borders[name, at], band.readings[node.name].border))
        return {
            (name, at): self.context.sizes.rows(name, self.context.supply[name][at].has, sides) for (name, at), sides in borders.items()
        }

    def _entries(self, names: Iterable[str]) -> StepCost:
        """The step of the device's values from outside, which live from the first band to the last at least."""
        touched: dict[Hashable, int] = {}
        for name in names:
            for at in range(len(self.context.supply.get(name, ()))):
                touched[name, at] = self.supplied[name, at] * self.context.sizes.column_blocks(name)
            if name not in self.context.supply:
                touched[name] = self.context.whole[name] * self.context.sizes.column_blocks(name)
        return StepCost(touched)

    def join(self, name: str, readers: Sequence[Node]) -> StepCost:
        """The step of the copies that join the pieces of an exit for the readers of the whole."""
        sizes, maps = self.context.sizes, self.context.run.maps
        whole, blocks = sizes.all_rows(name, maps.stored(name, readers)), sizes.column_blocks(name)
        pieces = [sizes.rows(name, band.lines[name], band.borders.get(name, NO_SIDES)) for band in self.bands]
        touched: dict[Hashable, int] = {(number, name): rows * blocks for number, rows in enumerate(pieces)}
        return StepCost({**touched, name: whole * blocks}, whole + max(pieces), sizes.all_rows(name) * blocks)


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that a step reads or writes: its name in the estimate, and rows of a column block."""

    key: Hashable
    rows: int


@dataclass(frozen=True)
class _Steps:
    """The steps of one band of an estimate, which are added to `found` as they follow each other."""

    estimate: Estimate
    number: int
    found: list[StepCost]

    def add(self) -> None:
        sizes, reading = self._sizes, self._band.readings
        for node in self.estimate.context.run.nodes:
            lines, border = self._band.lines[node.name], reading[node.name].border
            pairs = zip(node.operands, reading[node.name].lines, strict=True)
            values = {name: self._read(name, read, border) for name, read in pairs if read is not None} | {
                node.name: self._result(node.name)
            }
            bordered = self._band.borders.get(node.name, NO_SIDES) != NO_SIDES
            at_once = sizes.at_once(node, {name: value.rows for name, value in values.items()}, bordered=bordered)
            touched = {value.key: value.rows * sizes.column_blocks(name) for name, value in values.items()}
            reloading = sizes.reloading(node, lines, sum(touched.values()))
            self.found.append(StepCost(touched, at_once, sizes.cycles(node, lines) + reloading))

    @property
    def _sizes(self) -> ImageSizes:
        return self.estimate.context.sizes

    @property
    def _band(self) -> Band:
        return self.estimate.bands[self.number]

    def _read(self, name: str, lines: Lines, around: Sides) -> _Value:
        """Where lines of an operand are read with `around` as their border, after the steps that put them there."""
        context, sizes = self.estimate.context, self._sizes
        if name in context.run.names:
            return self._bordered(name, self._result(name), lines, around, at_hand=self._band.lines[name])
        if name in context.supply:
            return self._supplied(name, lines, around)
        if name in context.run.device_entries:
            return self._bordered(name, _Value(name, context.whole[name]), lines, around)
        sent = _Value((self.number, name, lines), sizes.rows(name, lines))
        rows = sent.rows * sizes.column_blocks(name)
        self.found.append(StepCost({sent.key: rows}, sent.rows, costs_on(sizes.target).transfer(rows)))
        return self._bordered(name, sent, lines, around)

    def _supplied(self, name: str, lines: Lines, around: Sides) -> _Value:
        """Lines of a value in pieces: one of the pieces, or a copy of lines of several pieces."""
        pieces, rows = self.estimate.context.supply[name], self.estimate.supplied
        one = covering(pieces, lines)
        if one is not None:
            return self._bordered(name, _Value((name, one), rows[name, one]), lines, around, at_hand=pieces[one].has)
        sources = [_Value((name, at), rows[name, at]) for at in owners(pieces, lines)]
        return self._copy(name, sources, lines, around)

    def _bordered(self, name: str, source: _Value, lines: Lines, around: Sides, at_hand: Lines | None = None) -> _Value:
        """A convolution reads a value that was made for it where it is, and of others a copy that has a border."""
        return source if around == NO_SIDES or at_hand == lines else self._copy(name, [source], lines, around)

    def _copy(self, name: str, sources: Sequence[_Value], lines: Lines, around: Sides) -> _Value:
        copy, blocks = _Value((self.number, name, lines, around), self._sizes.rows(name, lines, around)), self._sizes.column_blocks(name)
        touched = {value.key: value.rows * blocks for value in (*sources, copy)}
        self.found.append(StepCost(touched, copy.rows + max(source.rows for source in sources), copy.rows * blocks))
        return copy

    def _result(self, name: str) -> _Value:
        return _Value((self.number, name), self._sizes.rows(name, self._band.lines[name], self._band.borders.get(name, NO_SIDES)))
