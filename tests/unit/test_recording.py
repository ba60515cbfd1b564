"""Recorded values are the simulator's: those of a plain run of the whole program, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tpucc
from tests.unit.test_debugger import CASES
from tpucc.interop.programs import folder
from tpucc.isa.instructions import Place
from tpucc.numerics import AnyArray
from tpucc.runtime.check import random_inputs
from tpucc.runtime.runtime import Runtime
from tpucc.sim.interpret import Interpreter
from tpucc.sim.machine import joined
from tpucc.sim.recording import LANES, ROWS, SIDE, Seen, recorded, usual_window

MORE: dict[str, tuple[str, Any]] = {**CASES, "padding": ("02_iris", {}), "products of sums": ("06_digits_lstm", {"params": {"batch": 3}})}


@pytest.fixture(params=MORE)
def runtime(request: pytest.FixtureRequest) -> Runtime:
    name, options = MORE[request.param]
    return tpucc.compile(folder() / f"{name}.tpu", **options).runtime


def memory(interpreter: Interpreter, seen: Seen) -> AnyArray:
    """The rows that a recorded operand names; transfers move bytes, whatever values these are of."""
    machine, lanes = interpreter.machine, slice(seen.values.shape[1])
    if seen.place in (Place.ACC, Place.HOST):
        return (machine.accumulators if seen.place is Place.ACC else machine.host)[seen.rows, lanes]
    return (
        joined(machine.ub[seen.rows, lanes], machine.ub[seen.rows + 1, lanes])
        if seen.values.dtype == np.int16
        else machine.ub[seen.rows, lanes]
    )


@pytest.mark.parametrize("window", [slice(None), slice(37, 61), slice(-9, None)], ids=["all", "a middle part", "the end"])
def test_what_is_recorded_is_the_simulators_memory(runtime: Runtime, window: slice) -> None:
    """Of every instruction of the window: what it read before it, and what it wrote after it, in a run of everything."""
    program = runtime.program
    chosen = np.arange(len(program.instructions))[window]
    inputs = random_inputs(runtime)
    found = {step.index: step for step in recorded(runtime.begun(inputs), chosen, "these").steps}
    assert list(found) == chosen.tolist()
    whole, compared = runtime.begun(inputs), 0
    for index in range(len(program.instructions)):
        step = found.get(index)
        for seen in step.reads if step else ():
            assert np.array_equal(memory(whole, seen), seen.values), (index, seen.place)
        whole.execute(index)
        for seen in step.writes if step else ():
            assert 0 < len(seen.rows) <= ROWS
            assert seen.values.shape[1] == min(LANES, program.target.mxu)
            assert np.array_equal(memory(whole, seen), seen.values), (index, seen.place)
            compared += seen.values.size
    assert compared or not len(chosen)


def test_the_corner_of_a_tile_is_that_of_the_tile_in_use(runtime: Runtime) -> None:
    inputs, count = random_inputs(runtime), len(runtime.program.instructions)
    found = recorded(runtime.begun(inputs), np.arange(count), "these")
    fetches, whole = {step.index: step.fetch for step in found.steps if step.fetch >= 0}, runtime.begun(inputs)
    for index in range(count):
        whole.execute(index)
        if index in fetches:
            assert np.array_equal(found.tiles[fetches[index]], whole.machine.tiles[whole.tile, :SIDE, :SIDE])
    assert fetches
    assert set(found.tiles) == set(fetches.values())


def test_the_usual_window_has_the_beginning_and_the_start_of_each_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    program = tpucc.compile(folder() / "05_digits_cnn.tpu", params={"batch": 6}).runtime.program
    monkeypatch.setattr("tpucc.sim.recording.FIRST", 20)
    monkeypatch.setattr("tpucc.sim.recording.EACH", 3)
    found = usual_window(program).tolist()
    wanted = {*range(20), *(i for n in np.unique(program.layer_of) for i in np.flatnonzero(program.layer_of == n)[:3].tolist())}
    assert found == sorted(wanted)
