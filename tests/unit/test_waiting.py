"""Why units stand still: every gap of every unit has its reason, and what it waits for ends where the gap does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tpucc
from tpucc.explain.waiting import Reason, shifter
from tpucc.interop.programs import folder
from tpucc.isa.effects import effects
from tpucc.machines.v1 import UNITS, Engine
from tpucc.runtime.runtime import Runtime

pytestmark = pytest.mark.usefixtures("any_ranges")

CASES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "dense": ("04_digits_mlp", {}),
    "convolutions": ("05_digits_cnn", {"params": {"batch": 6}}),
    "unoptimised": ("05_digits_cnn", {"params": {"batch": 6}, "level": 0}),
    "a full FIFO": ("06_digits_lstm", {"overrides": {"weight_fifo_tiles": 1}}),
    "host steps": ("12_mlp_mixer_block", {"level": 0}),
    "fast weights": ("06_digits_lstm", {"overrides": {"weight_bandwidth": 1e12}}),
}


@pytest.fixture(params=CASES)
def runtime(request: pytest.FixtureRequest) -> Runtime:
    name, options = CASES[request.param]
    return tpucc.compile(folder() / f"{name}.tpu", **options).runtime


def gaps(runtime: Runtime) -> dict[int, list[tuple[int, int]]]:
    """Of each unit the cycles in which it doesn't work before it has done its last instruction."""
    times, engine = runtime.timeline, effects(runtime.program.instructions).engine
    spans = {int(unit): [(times.start[i], times.end[i]) for i in np.flatnonzero(engine == unit)] for unit in UNITS}
    spans[shifter(runtime.program.machine)] = list(zip(times.tiles.shifting, times.tiles.shifted, strict=True))
    return {
        unit: [(int(a), int(b)) for a, b in zip([0, *(end for _, end in own)], [start for start, _ in own], strict=False) if b > a]
        for unit, own in spans.items()
    }


def test_each_gap_has_its_reasons_one_after_the_other(runtime: Runtime) -> None:
    found = runtime.waiting
    rows = [found[index] for index in range(len(found.unit))]
    for unit, wanted in gaps(runtime).items():
        own, joined = [row for row in rows if row.unit == unit], list[tuple[int, int]]()
        for row in own:
            together = joined and joined[-1][1] == row.start and own[own.index(row) - 1].instruction == row.instruction
            joined[-1:] = [(joined[-1][0], row.end)] if together else [*joined[-1:], (row.start, row.end)]
        assert joined == wanted, unit
    assert not [row for row in rows if row.reason is Reason.ISSUE]


def test_what_it_waits_for_ends_where_the_stretch_does(runtime: Runtime) -> None:
    program, times, tiles = runtime.program, runtime.timeline, runtime.timeline.tiles
    engine = effects(program.instructions).engine
    numbers = program.instructions["index"][effects(program.instructions).pushes]
    for row in map(runtime.waiting.__getitem__, range(len(runtime.waiting.unit))):
        if not isinstance(row.reason, Reason):
            late = program.target.pipeline_cycles if row.reason == Engine.MATRIX else 0
            assert (engine[row.number], times.end[row.number] + late) == (row.reason, row.end)
            assert row.number < row.instruction
            continue
        begins, ends = {
            Reason.TILE: (tiles.asked, tiles.arrived),
            Reason.SHIFT: (tiles.shifting, tiles.shifted),
            Reason.PLACE: (tiles.shifting, tiles.shifted),
            Reason.SHADOW: (tiles.shifted, tiles.taken),
        }[row.reason]
        assert (row.number, row.begin, row.end) in zip(numbers, begins, ends, strict=False)


def test_the_words_have_the_numbers_of_the_stretch() -> None:
    runtime = tpucc.compile(folder() / "02_iris.tpu").runtime
    first, second = np.flatnonzero(effects(runtime.program.instructions).pops).tolist()
    assert [wait.words for wait in runtime.waiting.before(first)] == [
        "the host link, whose instruction 2 ends in cycle 1,551",
        "tile 0 to be shifted in, from cycle 1,349 to 1,605",
    ]
    assert runtime.waiting.before(second)[1].words == "tile 1, which is asked for in cycle 1,349 and arrives in 2,698"
