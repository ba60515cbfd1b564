"""Recorded values are the simulator's: those of a plain run of the whole program, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tpucc
from tests.unit.test_debugger import CASES, compiled
from tpucc.explain.recording import LANES, ROWS, SIDE, Seen, recorded, usual_window
from tpucc.interop.programs import folder
from tpucc.machines.v1 import Place
from tpucc.numerics import AnyArray
from tpucc.runtime.check import random_inputs
from tpucc.runtime.runtime import Runtime
from tpucc.sim.interpret import Interpreter
from tpucc.sim.memories import joined

MORE: dict[str, tuple[str, Any]] = {**CASES, "padding": ("02_iris", {}), "products of sums": ("06_digits_lstm", {"params": {"batch": 3}})}


@pytest.fixture(params=MORE)
def runtime(request: pytest.FixtureRequest) -> Runtime:
    name, options = MORE[request.param]
    return compiled(name, repr(options))


def memory(interpreter: Interpreter, seen: Seen) -> AnyArray:
    """The rows that a recorded operand names; transfers move bytes, whatever values these are of."""
    memories, lanes = interpreter.memories, slice(seen.values.shape[1])
    if seen.place in (Place.ACC, Place.HOST):
        return (memories["acc"] if seen.place is Place.ACC else memories["host"])[seen.rows, lanes]
    return (
        joined(memories["ub"][seen.rows, lanes], memories["ub"][seen.rows + 1, lanes])
        if seen.values.dtype == np.int16
        else memories["ub"][seen.rows, lanes]
    )


WINDOWS = (slice(None), slice(37, 61), slice(-9, None))
"""All instructions, some in the middle, and those at the end."""


def test_what_is_recorded_is_the_simulators_memory(runtime: Runtime) -> None:
    """Of each instruction of a window: what it read, what it wrote, and the corner of its tile, as in a run of everything."""
    program, inputs = runtime.program, random_inputs(runtime)
    chosen = [np.arange(len(program.instructions))[window] for window in WINDOWS]
    recordings = [recorded(runtime.begun(inputs), indices, "these") for indices in chosen]
    steps = [{step.index: step for step in recording.steps} for recording in recordings]
    assert [list(found) for found in steps] == [indices.tolist() for indices in chosen]
    whole, compared, tiles = runtime.begun(inputs), 0, recordings[0].tiles
    for index in range(len(program.instructions)):
        present = [found[index] for found in steps if index in found]
        for seen in (seen for step in present for seen in step.reads):
            assert np.array_equal(memory(whole, seen), seen.values), (index, seen.place)
        whole.execute(index)
        for seen in (seen for step in present for seen in step.writes):
            assert 0 < len(seen.rows) <= ROWS
            assert seen.values.shape[1] == min(LANES, program.target.mxu)
            assert np.array_equal(memory(whole, seen), seen.values), (index, seen.place)
            compared += seen.values.size
        if (fetch := steps[0][index].fetch) >= 0:
            assert np.array_equal(tiles[fetch], whole.memories.tiles[whole.tile, :SIDE, :SIDE])
    assert compared
    assert set(tiles) == {step.fetch for step in steps[0].values() if step.fetch >= 0} != set()


def test_the_usual_window_has_the_beginning_and_the_start_of_each_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    program = tpucc.compile(folder() / "05_digits_cnn.tpu", params={"batch": 6}).runtime.program
    monkeypatch.setattr("tpucc.explain.recording.FIRST", 20)
    monkeypatch.setattr("tpucc.explain.recording.EACH", 3)
    found = usual_window(program).tolist()
    wanted = {*range(20), *(i for n in np.unique(program.layer_of) for i in np.flatnonzero(program.layer_of == n)[:3].tolist())}
    assert found == sorted(wanted)
