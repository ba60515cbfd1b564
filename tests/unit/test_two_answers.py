"""Hazards have two answers: the scheduler's search and the verifier's events share what instructions read and write, and nothing else.

A fault in either is a disagreement with the other. Random machine programs without any wait are compared with a third answer, which looks
at every row; scheduled programs must pass the verifier.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec
import numpy as np
import pytest

from tests.support.cases import each
from tests.support.device_graphs import TINY, chain, compiled
from tests.support.random_machine import RandomProgram
from tests.support.worked import ROOT
from tpucc.isa.effects import Bools, Effects, Walks, effects
from tpucc.isa.verify import events as verifier
from tpucc.isa.verify import verify
from tpucc.machines.v1 import V1, Engine, Place
from tpucc.machines.v1.formats import format_of
from tpucc.numerics import Int64
from tpucc.schedule import hazards as scheduler
from tpucc.schedule import schedule
from tpucc.sim.memories import RowIndex, applied, numbered

SMALL = msgspec.structs.replace(TINY, name="small", unified_buffer_rows=90)
Pairs = set[tuple[int, int]]
"""An instruction, and one that it must wait for: the last conflicting one of another engine."""
Parts = list[verifier.Accesses | verifier.Pattern]


def random_effects(count: int) -> list[Effects]:
    """Those of random programs, which wait for nothing; every second one has values of 16 bits."""
    return [effects(RandomProgram(seed, length=80, wide=seed % 2 > 0).make().instructions) for seed in range(count)]


def by_every_row(touched: Effects) -> Pairs:
    """A loop over instructions and rows, which remembers who touched each row last."""
    written: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    used: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    last: dict[tuple[int, int], int] = {}
    for index, engine in enumerate(touched.engine.tolist()):
        sums = [("sum", row) for row in range(int(touched.sums.low[index]), int(touched.sums.high[index]))]
        reads = [("row", row) for walks in (touched.source, touched.source2) for row in walks.rows(index).tolist()]
        writes = [("row", row) for row in touched.target.rows(index).tolist()]
        (writes if touched.sums.writes[index] else reads).extend(sums)
        for places, before in ((reads, written), (writes, used)):
            for place in places:
                for other, earlier in before[place].items():
                    if other != engine:
                        last[index, other] = max(last.get((index, other), -1), earlier)
        for place in (*reads, *writes):
            used[place][engine] = index
        for place in writes:
            written[place][engine] = index
    return {(index, earlier) for (index, _), earlier in last.items()}


def by_scheduler(touched: Effects) -> Pairs:
    needs = scheduler.conflicts(touched)
    return {(index, int(needs[index, engine])) for index, engine in np.argwhere(needs >= 0).tolist()}


def by_verifier(touched: Effects) -> Pairs:
    """The same question put to the events that the verifier's rules look at."""
    walks = [(touched.source, verifier.READ), (touched.source2, verifier.READ), (touched.target, verifier.WRITE)]
    rows = [part for walk, kind in walks for part in verifier.walk_accesses(walk, kind)]
    last: dict[tuple[int, int], int] = {}
    for memory in (rows, _sums(touched)):
        for found in verifier.events(memory):
            engine, writes = touched.engine[found.instruction], found.kind == verifier.WRITE
            for other in Engine:
                theirs = engine == other
                before = np.where(writes, found.last_instruction(theirs), found.last_instruction(theirs & writes))
                for position in np.flatnonzero((before >= 0) & ~theirs).tolist():
                    key = int(found.instruction[position]), int(other)
                    last[key] = max(last.get(key, -1), int(before[position]))
    return {(index, earlier) for (index, _), earlier in last.items()}


def _sums(touched: Effects) -> list[verifier.Accesses]:
    reads, writes = np.flatnonzero(~touched.sums.writes), np.flatnonzero(touched.sums.writes)
    parts = ((reads, verifier.READ), (writes, verifier.WRITE))
    return [verifier.Accesses.of(own, touched.sums.low[own], touched.sums.high[own], kind) for own, kind in parts]


def test_the_scheduler_knows_nothing_of_the_verifier() -> None:
    for file in ("hazards.py", "synchronise.py"):
        tree = ast.parse((ROOT / "tpucc" / "schedule" / file).read_text())
        modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert modules
        assert not any("verify" in module for module in modules)


def test_all_answers_agree() -> None:
    for touched in random_effects(24):
        expected = by_every_row(touched)
        assert len(expected) > 5
        assert by_scheduler(touched) == expected
        assert by_verifier(touched) == expected


@each(range(12))
def test_the_rows_that_both_ask_about_are_those_that_the_simulator_uses(seed: int) -> None:
    """What is missing in the reads and writes that they share, both would miss."""
    program = RandomProgram(seed, length=80, wide=seed % 2 > 0).make()
    touched = effects(program.instructions)
    for index, record in enumerate(program.instructions):
        instruction = V1.read(record)
        action = applied(program, instruction, None, 0)
        if action is not None:
            width = format_of(action.flags).bytes_per_value
            read = [walks.rows(index) for walks in (touched.source, touched.source2)]
            assert buffer_rows(action.reads, width) == set(np.concatenate(read).tolist()), instruction
            assert buffer_rows([action.writes], width) == set(touched.target.rows(index).tolist()), instruction


def buffer_rows(operands: Iterable[tuple[Place, RowIndex]], width: int) -> set[int]:
    """The rows of the unified buffer among those of operands: a value of two bytes has two."""
    firsts = [numbered(rows).reshape(-1) for place, rows in operands if place not in Place.ACC | Place.HOST]
    return {row + byte for rows in firsts for row in rows.tolist() for byte in range(width)}


def test_the_schedulers_answer_in_pieces_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [scheduler.conflicts(touched) for touched in random_effects(10)]
    monkeypatch.setattr(scheduler, "BATCH", 7)
    for touched, expected in zip(random_effects(10), whole, strict=True):
        np.testing.assert_array_equal(scheduler.conflicts(touched), expected)


def test_the_verifiers_answer_in_pieces_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that may look at few rows at once remembers what it has seen."""
    all_touched = random_effects(8)
    expected = [by_every_row(touched) for touched in all_touched]
    for most in (1, 7, 60):
        monkeypatch.setattr(verifier, "BATCH", most)
        assert [by_verifier(touched) for touched in all_touched] == expected


@each([1, 2**31, 2**33])
def test_visits_have_numbers_that_hold_them(instructions: int) -> None:
    """The last of few strips and of many, by the last instruction: as numbers of 32 bits where they fit, else of 64."""
    strips = range(5, 8)
    runs = (np.array([instructions - 1, 0]), np.array([5, 7]), np.array([8, 8]))
    visits = scheduler._visits(runs, np.array([True, True]), strips, instructions)
    pairs = [(0, instructions - 1), (1, instructions - 1), (2, 0), (2, instructions - 1)]
    assert sorted(divmod(visit, instructions) for visit in visits.tolist()) == sorted(pairs)


NOTHING = np.zeros(0, np.int64)
RUNS_OF, WAIT = scheduler._runs_of, scheduler._wait


def without_walks(writes: bool) -> Callable[[Walks, bool], scheduler.Runs]:
    return lambda walks, writing: (NOTHING,) * 3 if writing is writes and walks.field != "acc" else RUNS_OF(walks, writing)


def without_sums(walks: Walks, writing: bool) -> scheduler.Runs:
    return (NOTHING,) * 3 if walks.field == "acc" else RUNS_OF(walks, writing)


def narrow(walks: Walks, writing: bool) -> scheduler.Runs:
    """Of each run of accumulators, the first row only."""
    instruction, low, high = RUNS_OF(walks, writing)
    return instruction, low, low + 1 if walks.field == "acc" else high


def forgetful(found: Int64, visits: Int64, earlier: Int64, instructions: int) -> None:
    """Knows no visit that lies far back."""
    WAIT(found, visits, earlier[len(earlier) // 2 :], instructions)


SCHEDULER_FAULTS = {
    "reads of the unified buffer": (scheduler, "_runs_of", without_walks(False)),
    "writes to the unified buffer": (scheduler, "_runs_of", without_walks(True)),
    "accumulators": (scheduler, "_runs_of", without_sums),
    "all accumulators but the first": (scheduler, "_runs_of", narrow),
    "visits far back": (scheduler, "_wait", forgetful),
}


@each(list(SCHEDULER_FAULTS))
def test_the_verifier_finds_what_the_scheduler_forgets(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tiles, _ = compiled(chain(33, 9, 7, 5), SMALL, 1)
    monkeypatch.setattr(*SCHEDULER_FAULTS[what])
    codes = {violation.code for violation in verify(schedule(tiles))}
    assert codes
    assert codes <= {"V0801", "V0802", "V0803"}


ACCESSES, LAST = verifier.walk_accesses, verifier.Events.last


def without_kind(kind: int) -> Callable[[Walks, int], Parts]:
    return lambda walks, asked: [] if asked == kind else ACCESSES(walks, asked)


def short(walks: Walks, kind: int) -> Parts:
    """Of each instruction's rows all but the last."""
    parts = [part for part in ACCESSES(walks, kind) if isinstance(part, verifier.Accesses)]
    return [verifier.Accesses.of(part.instruction, part.low, part.high - 1, kind) for part in parts]


def unsure(events: verifier.Events, among: Bools) -> Int64:
    """Knows no event that lies far back."""
    found = LAST(events, among)
    return np.where(np.arange(len(events)) - found < 3, found, -1)


VERIFIER_FAULTS = {
    "reads of the unified buffer": (verifier, "walk_accesses", without_kind(verifier.READ)),
    "writes to the unified buffer": (verifier, "walk_accesses", without_kind(verifier.WRITE)),
    "the last row": (verifier, "walk_accesses", short),
    "events far back": (verifier.Events, "last", unsure),
}


@each(list(VERIFIER_FAULTS))
def test_the_scheduler_finds_what_the_verifier_forgets(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    all_touched = random_effects(4)
    assert all(by_verifier(touched) == by_scheduler(touched) for touched in all_touched)
    monkeypatch.setattr(*VERIFIER_FAULTS[what])
    assert any(by_verifier(touched) != by_scheduler(touched) for touched in all_touched)
