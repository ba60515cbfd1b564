"""Which of several programs the driver takes: the clock is a list of numbers here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest

from tests.support.cases import each, one_of
from tests.support.device_graphs import TINY, chain
from tpucc.isa.program import Program
from tpucc.lowering.lower import drafts_of
from tpucc.lowering.tileprogram import TileProgram
from tpucc.schedule import fastest, schedule
from tpucc.sim.timing import time_program

ROOMY = msgspec.structs.replace(TINY, name="roomy", unified_buffer_rows=4000, accumulator_rows=64)


class Clock:
    """Says these cycles one after the other, and keeps the programs that it was asked about."""

    def __init__(self, *cycles: int) -> None:
        self.left = list(cycles)
        self.asked: list[Program] = []

    def __call__(self, program: Program) -> SimpleNamespace:
        self.asked.append(program)
        return SimpleNamespace(makespan=self.left.pop(0))


@pytest.fixture(scope="module")
def candidates() -> Sequence[TileProgram]:
    found = list(drafts_of(chain(30, 6, 6, 5), ROOMY).programs())
    assert len(found) > 2
    return found[:3]


def test_the_gain_is_said_of_the_split_alone(candidates: Sequence[TileProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    """What scheduling notes, as of rows that are spilled, gains nothing."""
    monkeypatch.setattr(fastest, "time_program", Clock(1000, 800, 900))
    monkeypatch.setattr(fastest, "least_cycles", lambda tiles, cores: 0)
    monkeypatch.setattr(fastest, "stream", lambda program, alone: SimpleNamespace(cycles=0, fits=False))

    def noting(tiles: TileProgram) -> Program:
        made = schedule(tiles)
        return replace(made, notes=(*made.notes, "rows were spilled"))

    _, program = fastest.fastest(iter(candidates), 1, noting)
    assert program is not None
    assert program.notes == (f"{candidates[1].notes[0]}: latency 800 cycles (was 1,000)", "rows were spilled")


@each([((1000, 970, 980), 1), ((1000, 971, 980), 0), ((1000, 1200, 900), 2), ((1000, 800, 700), 2), ((1000, 1000, 1000), 0)])
def test_the_fastest_that_gains_enough(
    cycles: tuple[int, ...], best: int, candidates: Sequence[TileProgram], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three percent are enough, and less is not worth another shape of program."""
    monkeypatch.setattr(fastest, "time_program", Clock(*cycles))
    monkeypatch.setattr(fastest, "least_cycles", lambda tiles, cores: 0)
    monkeypatch.setattr(fastest, "stream", lambda program, alone: SimpleNamespace(cycles=alone.makespan // 2, fits=alone.makespan > 700))
    tiles, program = fastest.fastest(iter(candidates), 1)
    assert program is not None
    assert (tiles.instructions == candidates[best].instructions).all()
    assert (best == 0) == (tiles is candidates[0])
    assert tiles.notes == program.notes
    if best:
        streamed = "; throughput is 25.0 % better" if cycles[best] == 800 else "; throughput is 3.1 % better" if cycles[best] == 970 else ""
        streamed = streamed or ("; throughput is 11.1 % better" if cycles[best] == 900 else "")
        assert tiles.notes == (f"{candidates[best].notes[0]}: latency {cycles[best]:,} cycles (was 1,000){streamed}",)


def test_programs_are_timed_with_all_their_cores(candidates: Sequence[TileProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(3, 2, 1)
    monkeypatch.setattr(fastest, "time_program", clock)
    monkeypatch.setattr(fastest, "least_cycles", lambda tiles, cores: 0)
    _, program = fastest.fastest(iter(candidates), 4)
    assert program is not None
    assert {asked.cores for asked in clock.asked} == {4}
    assert program.cores == 4


def test_others_than_a_large_program_are_not_even_made(candidates: Sequence[TileProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    def first_only() -> object:
        yield candidates[0]
        pytest.fail("a second candidate was asked for")

    monkeypatch.setattr(fastest, "LARGEST", len(candidates[0].instructions) - 1)
    assert fastest.fastest(first_only(), 1) == (candidates[0], None)  # type: ignore[arg-type]


def test_an_only_candidate_is_not_timed(candidates: Sequence[TileProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastest, "time_program", Clock())
    assert fastest.fastest(iter(candidates[:1]), 1) == (candidates[0], None)


@each([((970, 970), 2), ((971, 970), 2), ((971, 2000), 1), ((900, 949), 3), ((900, 950), 2)])
def test_what_cannot_gain_enough_is_not_scheduled(
    bounds: tuple[int, int], timed: int, candidates: Sequence[TileProgram], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three percent of the first, or less than the best so far: 950 cycles."""
    clock, left = Clock(1000, 950, 949), list(bounds)
    monkeypatch.setattr(fastest, "time_program", clock)
    monkeypatch.setattr(fastest, "least_cycles", lambda tiles, cores: left.pop(0))
    fastest.fastest(iter(candidates), 1)
    assert len(clock.asked) == timed


@pytest.mark.parametrize("cores", one_of(3, [1, 4]))
@pytest.mark.parametrize("bandwidth", [1e6, 1e9, 1e12])
@pytest.mark.parametrize("latency", [0.0, 1e-6])
def test_no_schedule_is_faster_than_the_bound(cores: int, bandwidth: float, latency: float) -> None:
    """The link, weight memory or a unit is what limits; at some machine the bound is reached to a tenth."""
    target = msgspec.structs.replace(ROOMY, host_bandwidth=bandwidth, weight_bandwidth=2e15 / bandwidth, host_latency_seconds=latency)
    shares = []
    for widths in ((30, 6, 6, 5), (9, 3), (60, 17, 2, 9, 4), (3, 40, 40)):
        for tiles in drafts_of(chain(*widths), target).programs():
            makespan = time_program(replace(schedule(tiles), cores=cores)).makespan
            shares.append(fastest.least_cycles(tiles, cores) / makespan)
    assert max(shares) <= 1
    assert bandwidth == 1e9 or max(shares) > 0.9, max(shares)
