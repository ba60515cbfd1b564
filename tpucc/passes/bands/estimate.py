"""What a run takes when it is computed in bands: rows of the unified buffer, and cycles.

The steps are those that lowering will make: the nodes, the copies that get a border (`tpucc.lowering.borders`), and the copies that put
the bands together. The estimate is for one image of the batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tpucc.ir.graph import Node
from tpucc.ops.conv2d import Conv2dAttributes
from tpucc.ops.convolution import ConvolutionAttributes
from tpucc.passes.bands.lines import NO_SIDES, Lines, Sides, convolution_padding
from tpucc.passes.bands.run import Band, Run
from tpucc.passes.bands.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Work:
    """One step: the rows of each value that it touches, those that must be there at once, and its cycles."""

    touched: Mapping[Hashable, int]
    together: int = 0
    cycles: int = 0


@dataclass(frozen=True)
class Estimate:
    """A run in bands. `passing` are the rows of values that only pass by: made before the run, read after it."""

    sizes: Sizes
    run: Run
    bands: tuple[Band, ...]
    passing: int = 0

    @cached_property
    def works(self) -> tuple[Work, ...]:
        found = [self._entries(self.run.device_entries)]
        found += [work for number, band in enumerate(self.bands) for work in _Steps(self.sizes, self.run, number, band).works()]
        if len(self.bands) > 1:
            found += [self._join(node) for node in self.run.exits if self.run.is_read_on_device(node.name)]
        found.append(self._entries(name for name in self.run.device_entries if self.run.is_read_on_device(name)))
        return tuple(found)

    @property
    def cycles(self) -> int:
        return sum(work.cycles for work in self.works)

    @property
    def together(self) -> int:
        """The most rows that one step needs at once."""
        return max(work.together for work in self.works)

    @property
    def live(self) -> int:
        """The most rows alive at a time."""
        return self.passing + _largest_live_sum([work.touched for work in self.works])

    @property
    def lines(self) -> int:
        """Lines of the last exit in the largest band."""
        return max(last - first for first, last in (band.pieces[self.run.exits[-1].name] for band in self.bands))

    @property
    def repeated(self) -> float:
        """Rows that are computed again, as a share of all."""
        computed = sum(self.sizes.rows(node.name, band.lines[node.name]) for band in self.bands for node in self.run.nodes)
        return computed / sum(self.sizes.all_rows(node.name) for node in self.run.nodes) - 1

    def _entries(self, names: Iterable[str]) -> Work:
        """Values of the device from outside are there from the first band to the last, or longer."""
        return Work({name: self.sizes.item(name) for name in names})

    def _join(self, node: Node) -> Work:
        """The copies that put the pieces of an exit together."""
        graph, name, blocks = self.run.maps.graph, node.name, self.sizes.blocks(node.name)
        readers = (user for user in graph.users[name] if user.name not in self.run.names)
        whole = self.sizes.all_rows(name, _widest(convolution_padding(graph, reader) for reader in readers))
        pieces = [self.sizes.rows(name, band.lines[name]) for band in self.bands]
        touched = {(number, name): rows * blocks for number, rows in enumerate(pieces)}
        return Work({**touched, name: whole * blocks}, whole + max(pieces), self.sizes.all_rows(name) * blocks)


@dataclass(frozen=True, slots=True)
class _Value:
    """What a step reads or writes: its name in the estimate, and rows of a column block."""

    key: Hashable
    rows: int


class _Steps:
    """The steps of one band."""

    def __init__(self, sizes: Sizes, run: Run, number: int, band: Band) -> None:
        self._sizes = sizes
        self._run = run
        self._number = number
        self._band = band
        self._borders: dict[str, Sides] = {}
        for node in run.nodes:
            if (name := node.operands[0]) in run.names and self._reads_all(node):
                self._borders[name] = _widest((self._borders.get(name, NO_SIDES), self._padding(node)))

    def works(self) -> Iterator[Work]:
        for node in self._run.nodes:
            read: dict[str, _Value] = {}
            transfer = 0
            for name, lines in zip(node.operands, self._band.readings[node.name].lines, strict=True):
                if lines is None:
                    continue
                read[name] = self._operand(name, lines)
                transfer += self._transfer(name, read[name])
                if self._padding(node) != NO_SIDES and not self._reads_all(node):
                    copy = _Value((read[name].key, self._padding(node)), self._sizes.rows(name, lines, self._padding(node)))
                    yield self._work(name, {name: read[name]}, copy, copy.rows + read[name].rows, copy.rows * self._sizes.blocks(name))
                    read[name] = copy
            result = self._result(node.name)
            together = self._sizes.together(node, {node.name: result.rows, **{name: value.rows for name, value in read.items()}})
            yield self._work(node.name, read, result, together, transfer + self._sizes.cycles(node, self._band.lines[node.name]))

    def _work(self, name: str, read: Mapping[str, _Value], result: _Value, together: int, cycles: int) -> Work:
        touched = {value.key: value.rows * self._sizes.blocks(operand) for operand, value in read.items()}
        return Work({**touched, result.key: result.rows * self._sizes.blocks(name)}, together, cycles)

    def _result(self, name: str) -> _Value:
        return _Value((self._number, name), self._sizes.rows(name, self._band.lines[name], self._borders.get(name, NO_SIDES)))

    def _operand(self, name: str, lines: Lines) -> _Value:
        """A band of a value of the run, lines that the host sends, or a whole value of the device."""
        if name in self._run.names:
            return self._result(name)
        if name in self._run.device_entries:
            return _Value(name, self._sizes.all_rows(name))
        return _Value((self._number, name, lines), self._sizes.rows(name, lines))

    def _transfer(self, name: str, value: _Value) -> int:
        from_host = name not in self._run.names and name not in self._run.device_entries
        return self._sizes.target.host_cycles(value.rows * self._sizes.blocks(name)) if from_host else 0

    def _padding(self, node: Node) -> Sides:
        """The padding of a convolution in this band."""
        attributes = self._band.readings[node.name].attributes
        if not isinstance(attributes, Conv2dAttributes | ConvolutionAttributes):
            return NO_SIDES
        assert isinstance(attributes.padding, tuple)
        return attributes.padding

    def _reads_all(self, node: Node) -> bool:
        """Whether the first operand is read as it is computed, with a border around it if need be; else a convolution reads a copy."""
        name = node.operands[0]
        return name in self._run.names and self._band.readings[node.name].lines[0] == self._band.lines[name]


def _widest(sides: Iterable[Sides]) -> Sides:
    top, bottom, left, right = map(max, zip(NO_SIDES, *sides, strict=True))
    return top, bottom, left, right


def _largest_live_sum(steps: Sequence[Mapping[Hashable, int]]) -> int:
    """The most rows alive at a step, from the first step that touches a value to the last. A border makes a value as large as it gets."""
    last = {key: at for at, touched in enumerate(steps) for key in touched}
    alive: dict[Hashable, int] = {}
    total = peak = 0
    for at, touched in enumerate(steps):
        for key, rows in touched.items():
            if rows > alive.get(key, 0):
                total += rows - alive.get(key, 0)
                alive[key] = rows
        peak = max(peak, total)
        total -= sum(alive.pop(key) for key in touched if last[key] == at)
    return peak
