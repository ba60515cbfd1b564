"""The array of processing elements: its products are those of integers, its cycles those of the timing model."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from itertools import accumulate, product

import msgspec
import numpy as np
import pytest

from tests.support.cases import each, one_of
from tests.support.machine import TINY, Writer
from tpucc.isa.program import Program
from tpucc.machines.v1 import Engine, Flag, Opcode
from tpucc.sim.timing import Timeline, time_program
from tpucc.systolic import NONE, Cycle, Multiply, Tile, simulate

SHAPES = [(4, 4), (4, 7), (9, 5), (16, 16), (5, 32), (32, 32)]


def integers(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.integers(-128, 128, shape)


def random_work(random: np.random.Generator, rows: int, columns: int) -> list[Multiply]:
    """Up to six tiles, each for up to three row blocks, some accumulating; some tiles come late."""
    work: list[Multiply] = []
    late = 0
    for _ in range(random.integers(1, 7)):
        late += int(random.integers(0, 3 * rows)) * int(random.integers(0, 2))
        for block in range(random.integers(1, 4)):
            tile = None if block else Tile(integers(random, rows, columns), late)
            x = integers(random, int(random.integers(1, 2 * rows + 2)), rows)
            work.append(Multiply(x, tile, int(random.integers(0, 9)), bool(random.integers(0, 2))))
    return work


def expected(work: list[Multiply], columns: int) -> np.ndarray:
    """The accumulators by integer matrix products, one multiply after the other."""
    sums = np.zeros((max(m.acc + len(m.x) for m in work), columns), np.int64)
    weights = np.zeros(())
    for multiply in work:
        weights = multiply.tile.weights if multiply.tile is not None else weights
        rows = slice(multiply.acc, multiply.acc + len(multiply.x))
        sums[rows] = sums[rows] * multiply.accumulate + multiply.x @ weights
    return sums


@pytest.mark.parametrize(("shape", "seed"), one_of(2, product(SHAPES, range(5))))
def test_the_products_are_those_of_integers(shape: tuple[int, int], seed: int) -> None:
    work = random_work(np.random.default_rng([seed, *shape]), *shape)
    *_, last = simulate(work, rows=shape[0], columns=shape[1])
    np.testing.assert_array_equal(last.accumulators, expected(work, shape[1]))


def test_the_largest_values_do_not_overflow() -> None:
    *_, last = simulate([Multiply(np.full((3, 32), 255), Tile(np.full((32, 4), -128)))], rows=32, columns=4)
    np.testing.assert_array_equal(last.accumulators, np.full((3, 4), -128 * 255 * 32))


def timed_program(random: np.random.Generator, mxu: int) -> tuple[Program, list[Multiply]]:
    """A program of random multiplies, tiles fetched as far ahead as the FIFO allows, and the same work for the array."""
    work = random_work(random, mxu, mxu)
    bandwidth, places = mxu * mxu / int(random.integers(1, 3 * mxu)), int(random.integers(1, 5))
    target = msgspec.structs.replace(TINY, mxu=mxu, clock_hz=1.0, weight_bandwidth=bandwidth, weight_fifo_tiles=places)
    writer = Writer(target)
    ahead = sum(multiply.tile is not None for multiply in work)
    for _ in range(min(places, ahead)):
        writer.add(Opcode.READ_WEIGHTS, index=0)
    for multiply in work:
        switch = multiply.tile is not None
        flags = Flag.SWITCH * switch | Flag.ACCUMULATE * multiply.accumulate
        writer.add(Opcode.MATRIX_MULTIPLY, flags, ub=0, acc=multiply.acc, inner=len(multiply.x))
        ahead -= switch
        if switch and ahead >= places:
            writer.add(Opcode.READ_WEIGHTS, index=0)
    return writer.program(), work


def arriving(work: list[Multiply], timeline: Timeline) -> list[Multiply]:
    """The same work, each tile in the FIFO when the timing model says."""
    times = iter(timeline.tiles.arrived.tolist())
    return [Multiply(m.x, m.tile and Tile(m.tile.weights, next(times)), m.acc, m.accumulate) for m in work]


def spans(column: np.ndarray) -> tuple[list[int], list[int]]:
    """First cycle of each number that isn't `NONE`, and the first after the last."""
    numbers = range(column.max() + 1)
    found = [np.flatnonzero(column == number) for number in numbers]
    return [int(at[0]) for at in found], [int(at[-1]) + 1 for at in found]


@pytest.mark.parametrize(("mxu", "seed"), one_of(2, product([4, 5, 8, 16, 32], range(5))))
def test_every_time_is_the_timing_model_s(mxu: int, seed: int) -> None:
    """Shifts, multiplies, and the cycle in which the last sum is there: `tile_shift_cycles`, a row a cycle, `pipeline_cycles`."""
    program, work = timed_program(np.random.default_rng([seed, mxu]), mxu)
    timeline = time_program(program)
    cycles = list(simulate(arriving(work, timeline), rows=mxu, columns=mxu))
    multiplies = program.instructions["opcode"] == Opcode.MATRIX_MULTIPLY
    started, ended = spans(np.array([cycle.multiply for cycle in cycles]))
    assert started == timeline.start[multiplies].tolist()
    assert ended == timeline.end[multiplies].tolist()
    shifting, shifted = spans(np.array([cycle.shifting for cycle in cycles]))
    assert shifting == timeline.tiles.shifting.tolist()
    assert shifted == timeline.tiles.shifted.tolist()
    assert len(cycles) == timeline.makespan


def test_the_first_multiply_s_sums_can_be_used_when_the_timing_model_says() -> None:
    """What waits for the matrix unit starts in the cycle after the one that accumulates the last sum, and no sooner."""
    writer = Writer(msgspec.structs.replace(TINY, weight_bandwidth=16e6))
    writer.add(Opcode.READ_WEIGHTS, index=writer.tile(np.eye(4)))
    writer.add(Opcode.MATRIX_MULTIPLY, Flag.SWITCH, ub=0, acc=0, inner=7)
    writer.add(Opcode.SYNCHRONIZE, index=Engine.ACTIVATION, engines=1 << Engine.MATRIX)
    writer.add(Opcode.ACTIVATE, acc=0, dest=0, inner=7)
    start = time_program(writer.program()).start[3]
    x = np.arange(1, 29).reshape(7, 4)
    cycles = list(simulate([Multiply(x, Tile(np.eye(4, dtype=int), arrived=1))], rows=4, columns=4))
    np.testing.assert_array_equal(cycles[start - 1].accumulators, x)
    assert (cycles[start - 2].accumulators != x).any()


@each(SHAPES)
def test_a_row_takes_as_long_as_it_crosses_elements(rows: int, columns: int) -> None:
    """Read in cycle t, at element (r, c) in cycle t + 1 + r + c, the last sum accumulated in cycle t + rows + columns."""
    cycles = list(simulate([Multiply(np.ones((1, rows)), Tile(np.ones((rows, columns))))], rows=rows, columns=columns))
    read = next(cycle.number for cycle in cycles if cycle.multiply == 0)
    assert read == rows
    found = np.array([cycle.busy for cycle in cycles])
    np.testing.assert_array_equal(found.sum(0), np.ones((rows, columns)))
    np.testing.assert_array_equal(found.argmax(0), read + 1 + np.add.outer(np.arange(rows), np.arange(columns)))
    assert cycles[-1].number == read + rows + columns
    assert (cycles[-2].accumulators == rows).sum() == columns - 1


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_the_first_element_never_waits_when_rows_cover_the_shift(rows: int, columns: int) -> None:
    """Back-to-back tiles: the shadow hides the shift as long as a tile is used for as many rows as the array has."""
    random = np.random.default_rng(rows)
    work = [Multiply(integers(random, m, rows), Tile(integers(random, rows, columns))) for m in (rows, rows + 3, rows, 2 * rows, 1)]
    cycles = list(simulate(work, rows=rows, columns=columns))
    for element in ((0, 0), (rows - 1, columns - 1)):
        row = np.array([cycle.row[element] for cycle in cycles])
        at = np.flatnonzero(row != NONE)
        np.testing.assert_array_equal(at, at[0] + np.arange(6 * rows - 2 * rows + 3 + rows + 1))


@pytest.mark.parametrize("short", [1, 2])
def test_fewer_rows_than_the_shift_leave_a_bubble(short: int) -> None:
    """Exactly as long as the rows that are missing."""
    random = np.random.default_rng(short)
    work = [Multiply(integers(random, 6 - short, 6), Tile(integers(random, 6, 3))) for _ in range(3)]
    first, last = spans(np.array([cycle.multiply for cycle in simulate(work, rows=6, columns=3)]))
    assert [b - a for a, b in zip(last, first[1:], strict=False)] == [short, short]


@each(SHAPES)
def test_shadows_are_taken_in_the_last_possible_cycle(rows: int, columns: int) -> None:
    """A shift could not begin a cycle sooner: the next tile's first weight is at each element when that has just switched."""
    random = np.random.default_rng(columns)
    work = [Multiply(integers(random, rows, rows), Tile(integers(random, rows, columns))) for _ in range(3)]
    before = np.full((rows, columns), NONE)
    for cycle in simulate(work, rows=rows, columns=columns):
        switched = (cycle.tile == 1) & (before == 0)
        assert (cycle.shadow_row[switched] == rows - 1).all()
        assert (cycle.shadow_tile[switched] == 2).all()
        before = cycle.tile


def test_weights_are_shifted_in_row_by_row() -> None:
    """The tile [[1, 2], [3, 4], [5, 6]]: the last row of weights first, column 1 a cycle later, in place after three cycles."""
    tile = Tile(np.array([[1, 2], [3, 4], [5, 6]]))
    cycles = list(simulate([Multiply(np.ones((1, 3)), tile)], rows=3, columns=2))
    shown = [cycle.shadow.tolist() for cycle in cycles[1:5]]
    assert shown[0] == [[5, 0], [0, 0], [0, 0]]
    assert shown[1] == [[3, 6], [5, 0], [0, 0]]
    assert shown[2] == [[1, 4], [3, 6], [5, 0]]
    assert shown[3] == [[1, 2], [3, 4], [5, 6]]


def test_elements_show_what_they_hold() -> None:
    x, w = np.array([[1, 2], [3, 4]]), np.array([[10, 20, 30], [40, 50, 60]])
    cycles = list(simulate([Multiply(x, Tile(w))], rows=2, columns=3))
    assert [cycle.multiply for cycle in cycles[:5]] == [NONE, NONE, 0, 0, NONE]
    assert [cycle.shifting for cycle in cycles[:3]] == [0, 0, NONE]
    third = cycles[4]
    assert third.row.tolist() == [[1, 0, NONE], [0, NONE, NONE]]
    assert third.x[0, :2].tolist() == [3, 1]
    assert third.tile.tolist() == [[0, 0, NONE], [0, NONE, NONE]]
    assert third.sums.tolist() == [[30, 20, 0], [10 + 80, 0, 0]]
    assert third.accumulators.tolist() == [[0] * 3] * 2
    assert cycles[5].accumulators.tolist() == [[90, 0, 0], [0, 0, 0]]


def test_a_cycle_does_not_change() -> None:
    work = [Multiply(np.ones((4, 4)), Tile(np.ones((4, 4))))]
    cycles = list(simulate(work, rows=4, columns=4))
    assert [cycle.number for cycle in cycles] == list(range(len(cycles)))
    growing = [int(cycle.accumulators.sum()) for cycle in cycles]
    assert growing == list(accumulate(growing, max))
    assert growing[0] == 0
    assert growing[-1] == 64
    with pytest.raises(FrozenInstanceError):
        cycles[0].number = 3  # type: ignore[misc]
    for name in Cycle.__slots__:
        value = getattr(cycles[5], name)
        assert not (isinstance(value, np.ndarray) and value.flags.writeable), name


@each(
    [
        ([Multiply(np.ones((2, 4)))], "the first multiply has no tile"),
        ([Multiply(np.ones((2, 3)), Tile(np.ones((4, 5))))], r"x of multiply 0 is \(2, 3\), expected at least one row of 4"),
        ([Multiply(np.ones((0, 4)), Tile(np.ones((4, 5))))], "expected at least one row"),
        ([Multiply(np.ones((2, 4)), Tile(np.ones((4, 5)))), Multiply(np.ones(4))], "x of multiply 1"),
        ([Multiply(np.ones((2, 4)), Tile(np.ones((4, 5))), acc=-1)], "acc of multiply 0 is -1"),
        ([Multiply(np.ones((2, 4)), Tile(np.ones((5, 4))))], r"the tile of multiply 0 is \(5, 4\), expected \(4, 5\)"),
    ]
)
def test_shapes_that_do_not_fit(work: list[Multiply], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        simulate(work, rows=4, columns=5)


def test_nothing_to_do_takes_no_cycle() -> None:
    assert list(simulate([], rows=4, columns=4)) == []


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_what_waits_at_the_edges_enters_in_its_turn(rows: int, columns: int) -> None:
    """Entry (i, d) of the setup is at the first element of row i after d + 1 cycles, and so are weights at the first row of shadows."""
    random = np.random.default_rng([rows, columns])
    work = [Multiply(integers(random, rows + 2, rows), Tile(integers(random, rows, columns))) for _ in range(2)]
    cycles = list(simulate(work, rows=rows, columns=columns))
    for cycle in cycles[: -rows - columns]:
        for lane, delay in np.argwhere(cycle.setup_row != NONE).tolist():
            later = cycles[cycle.number + delay + 1]
            assert (later.row[lane, 0], later.x[lane, 0]) == (cycle.setup_row[lane, delay], cycle.setup[lane, delay])
        for column, delay in np.argwhere(cycle.edge_row != NONE).tolist():
            later = cycles[cycle.number + delay + 1]
            assert later.shadow[0, column] == cycle.edge[column, delay]
            assert (later.shadow_row[0, column], later.shadow_tile[0, column]) == (
                cycle.edge_row[column, delay],
                cycle.edge_tile[column, delay],
            )
    assert sum((cycle.setup_row != NONE).sum() for cycle in cycles) == 2 * (rows + 2) * rows * (rows + 1) // 2
    assert sum((cycle.edge_row != NONE).sum() for cycle in cycles) == 2 * rows * columns * (columns + 1) // 2
