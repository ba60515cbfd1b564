"""Time: the machine's rules in cycles, checked by arithmetic, and against a second model written another way."""

from __future__ import annotations

import numpy as np
import pytest

import tpucc
from tests.support.cases import LONG, one_of
from tests.support.dense import DenseNetwork
from tests.support.machine import Writer
from tpucc.explain.stalls import stalls
from tpucc.isa.program import Program
from tpucc.machine.instruction import DecodedInstruction
from tpucc.machines.v1 import V1, Engine, Flag, Opcode
from tpucc.sim.timing import time_program

pytestmark = pytest.mark.usefixtures("any_ranges")

CHAIN = """
param batch = 200
param layers = 5
weights random(seed=0)
model chain(x: f32[batch, 2000]):
    for i in range(layers):
        weight w: f32[2000, 2000] = "w{i}"
        x = relu(x @ w)
    return x
"""


def slow_times(program: Program) -> tuple[list[int], list[int]]:
    """Start and end of each instruction, by relaxing one rule at a time until nothing moves: slow, and nothing like the fast one."""
    target, code = program.target, [V1.read(r) for r in program.instructions]
    engine = [Engine(int(e)) for e in V1.engine_of[program.instructions["opcode"]]]
    count = len(code)
    duration = [_duration(program, i) for i in code]
    fetches = [i for i in range(count) if code[i].opcode == Opcode.READ_WEIGHTS]
    switches = [i for i in range(count) if code[i].opcode in (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE) and code[i].flags & 1]
    start, shift = [0] * count, [0] * len(switches)
    waits: list[tuple[int, int]] = []
    for s in range(count):
        if code[s].opcode == Opcode.SYNCHRONIZE:
            later = [i for i in range(s, count) if engine[i] == code[s]["index"]]
            waits += [(later[0], i) for i in range(s) if later and (code[s]["engines"] >> engine[i]) & 1 and engine[i] < 4]
    moved = True
    while moved:
        before = (list(start), list(shift))
        last: dict[Engine, int] = {}
        for i in range(count):
            if engine[i] in last and engine[i] != Engine.CONTROL:
                start[i] = max(start[i], start[last[engine[i]]] + duration[last[engine[i]]])
            last[engine[i]] = i
        for waiter, other in waits:
            late = target.pipeline_cycles if engine[other] == Engine.MATRIX else 0
            start[waiter] = max(start[waiter], start[other] + duration[other] + late)
        for n, multiply in enumerate(switches):
            shift[n] = max(shift[n], start[fetches[n]] + duration[fetches[n]], start[switches[n - 1]] if n else 0)
            shift[n] = max(shift[n], shift[n - 1] + target.tile_shift_cycles if n else 0)
            start[multiply] = max(start[multiply], shift[n] + target.tile_shift_cycles)
            if n + target.weight_fifo_tiles < len(fetches):
                held = fetches[n + target.weight_fifo_tiles]
                start[held] = max(start[held], shift[n] + target.tile_shift_cycles)
        moved = (start, shift) != before
    return start, [a + b for a, b in zip(start, duration, strict=True)]


def _duration(program: Program, i: DecodedInstruction) -> int:
    target = program.target
    if i.opcode in (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY):
        latency = round(target.host_latency_seconds * target.clock_hz)
        return latency + max(1, round(i["inner"] * target.mxu * target.clock_hz / target.host_bandwidth))
    if i.opcode == Opcode.READ_WEIGHTS:
        return target.tile_fetch_cycles
    if i.opcode == Opcode.MATRIX_MULTIPLY:
        return i["inner"]
    if i.opcode == Opcode.SET_CONFIGURATION:
        return 1
    return i["outer"] * i["inner"] if i.opcode in (Opcode.ACTIVATE, Opcode.VECTOR) else 0


SMALL = """
weights random(seed=0)
model m(x: f32[{batch}, {k}], y: f32[{batch}, {n}]):
    weight w: f32[{k}, {n}]
    weight v: f32[{n}, 5]
    return relu(tanh(x @ w) * y @ v)
"""


@pytest.mark.parametrize("target", ["tpu_v1", "tiny"])
@pytest.mark.parametrize(("batch", "k", "n"), [(1, 3, 3), (4, 9, 10), (8, 20, 13), (5, 4, 17)])
def test_agrees_with_a_slow_model(target: str, batch: int, k: int, n: int) -> None:
    program = tpucc.compile_source(SMALL.format(batch=batch, k=k, n=n), target=target).program.value
    start, end = slow_times(program)
    found = time_program(program)
    real = V1.engine_of[program.instructions["opcode"]] != Engine.CONTROL
    np.testing.assert_array_equal(found.start[real], np.array(start)[real])
    np.testing.assert_array_equal(found.end[real], np.array(end)[real])


def test_the_numbers_of_tpu_v1() -> None:
    target = tpucc.load_target("tpu_v1")
    assert round(target.peak_ops / 1e12, 2) == 91.75
    assert target.tile_fetch_cycles == 1349
    assert round(target.peak_ops / 2 / target.weight_bandwidth) == 1349
    assert target.tile_shift_cycles == 256
    assert target.pipeline_cycles == 512


def test_the_paper_s_mlp0_is_bound_by_weight_memory() -> None:
    """Five 2000×2000 layers at batch 200: the paper's table 3 has 12.3 TOPS and 53.9 % weight stall for MLP0."""
    stats = tpucc.compile_source(CHAIN).stats
    assert 11.5 < stats["tops"] < 13
    rows = {name: stats["breakdown"][name] for name in ("array_active", "weight_stall", "weight_shift", "non_matrix")}
    assert max(rows, key=lambda name: rows[name]) == "weight_stall"
    assert sum(rows.values()) == pytest.approx(100)
    assert stats["bottleneck"] == "weight memory"
    assert stats["cycles"] >= 320 * 1349


@pytest.mark.parametrize(
    ("source", "name"),
    one_of(
        2,
        [
            (CHAIN.replace("batch = 200", "batch = 8"), "weight memory"),
            pytest.param(CHAIN.replace("batch = 200", "batch = 2048"), "host link", marks=pytest.mark.soak),
            pytest.param(CHAIN.replace("batch = 200", "batch = 2048").replace("layers = 5", "layers = 9"), "matrix unit", marks=LONG),
            ("weights random(seed=0)\nmodel m(x: f32[4000, 8]):\n    weight w: f32[8, 8]\n    return x @ w\n", "host link"),
            ("model m(x: f32[8, 8]):\n    return softmax(x)\n", "nothing"),
        ],
    ),
)
def test_the_bottleneck_is_what_limits(source: str, name: str) -> None:
    assert tpucc.compile_source(source).stats["bottleneck"] == name


@pytest.mark.parametrize("seed", one_of(3, range(12)))
def test_the_parts_of_the_numbers_agree(seed: int) -> None:
    exe = tpucc.compile_source(DenseNetwork(seed).source())
    stats, program = exe.stats, exe.program.value
    assert sum(layer["cycles"] for layer in stats["layers"]) == stats["cycles"]
    for found in (stats, *stats["layers"]):
        parts = found["breakdown"]
        total = parts["array_active"] + parts["weight_stall"] + parts["weight_shift"] + parts["non_matrix"]
        assert total == pytest.approx(100 if found["cycles"] else 0)
        assert parts["useful_macs"] + parts["unused_macs"] == pytest.approx(parts["array_active"])
        assert parts["raw_stall"] + parts["input_stall"] <= parts["non_matrix"] + 1e-9
    multiplies = program.instructions[program.instructions["opcode"] == Opcode.MATRIX_MULTIPLY]
    assert stats["breakdown"]["array_active"] == pytest.approx(100 * multiplies["inner"].sum() / stats["cycles"])
    assert stats["tops"] == pytest.approx(2 * stats["macs"] / stats["seconds"] / 1e12)
    transfers = program.instructions[program.instructions["opcode"] == Opcode.READ_HOST_MEMORY]
    assert stats["host_bytes"]["in"] == 256 * transfers["inner"].sum()


def test_a_transfer_takes_its_latency_and_its_bytes() -> None:
    """A microsecond and 200 rows of 256 bytes at 10 GiB/s; half of the rate where the bytes take as long as the latency."""
    target = tpucc.load_target("tpu_v1")
    assert target.host_cycles(200) == 700 + round(200 * 256 / (10 * 2**30) * 700e6)
    assert target.half_rate_rows == 42
    assert target.host_cycles(42) == pytest.approx(2 * 700, rel=0.01)
    assert tpucc.load_target("tiny").host_cycles(5) == 5
    assert tpucc.load_target("tiny").half_rate_rows == 0


def test_a_product_that_is_held_back_waits_for_no_tile() -> None:
    """The first product's tile has arrived long before its input, of which all column blocks cross at once: they are as nothing beside a
    latency of a millisecond."""
    exe = tpucc.compile_source(CHAIN, overrides={"host_latency_seconds": 1e-3})
    program, times = exe.program.value, time_program(exe.program.value)
    first = int(np.flatnonzero(V1.engine_of[program.instructions["opcode"]] == Engine.MATRIX)[0])
    raw, input, *others = stalls(program, times)[:, 0].tolist()
    assert input == times.start[first] == 700_000 + round(1600 * 256 / (10 * 2**30) * 700e6)
    assert [raw, *others] == [0, 0, 0, 0]
    assert times.tiles.shifted[0] == 1349 + 256


def test_waits_count_for_the_first_reason_that_holds() -> None:
    """Of each cycle in which a product waits: data, then its tile, then the tile's shift; they fill the time since the product before."""
    program = tpucc.compile_source(CHAIN, params={"batch": 40, "layers": 2}).program.value
    times, code = time_program(program), program.instructions
    held: dict[int, int] = {}
    multiplies = np.flatnonzero(V1.engine_of[code["opcode"]] == Engine.MATRIX).tolist()
    idle_from, taken, waits = 0, 0, stalls(program, times)
    for index in range(len(code)):
        if code["opcode"][index] == Opcode.SYNCHRONIZE and code["index"][index] == Engine.MATRIX:
            held = {engine: int(times.start[index]) for engine in Engine if code["engines"][index] >> engine & 1}
        if index not in multiplies:
            continue
        until = [max(idle_from, max(held.values(), default=0))]
        until.append(max(until[-1], int(times.tiles.arrived[taken])))
        until.append(max(until[-1], int(times.tiles.shifted[taken])))
        raw, input, weight, shift, _ = waits[:, multiplies.index(index)].tolist()
        assert raw + input == until[0] - idle_from
        assert [weight, shift] == [until[1] - until[0], until[2] - until[1]]
        assert times.start[index] == until[2]
        idle_from, taken, held = int(times.end[index]), taken + 1, {}


def test_the_waits_of_a_program_by_hand() -> None:
    """A tile is fetched in 8 cycles and shifted in 4. The first product waits for both, the second has the same tile. The third waits for
    the rest of the shift of its own, which arrived at 16: the shadow is free at 12. A last tile is never used."""
    writer = Writer()
    tile = writer.tile(np.eye(4))
    for rows, flag in ((4, Flag.SWITCH), (2, 0), (5, Flag.SWITCH)):
        writer.add(Opcode.READ_WEIGHTS, index=tile)
        writer.add(Opcode.MATRIX_MULTIPLY, int(flag), ub=0, acc=0, inner=rows)
    times = time_program(program := writer.program())
    assert list(zip(times.start[1:6:2].tolist(), times.end[1:6:2].tolist(), strict=True)) == [(12, 16), (16, 18), (20, 25)]
    assert stalls(program, times).tolist() == [[0, 0, 0], [0, 0, 0], [8, 0, 0], [4, 0, 2], [0, 0, 0]]
    assert (times.tiles.arrived.tolist(), times.tiles.shifted.tolist()) == ([8, 16, 24], [12, 20])


def test_what_neither_activation_nor_the_host_nor_a_tile_holds_back_waits_for_something_else() -> None:
    """For a fetch of whose tile it has no need."""
    writer = Writer()
    tile = writer.tile(np.eye(4))
    writer.add(Opcode.READ_WEIGHTS, index=tile)
    writer.add(Opcode.MATRIX_MULTIPLY, int(Flag.SWITCH), ub=0, acc=0, inner=1)
    writer.add(Opcode.READ_WEIGHTS, index=tile)
    writer.add(Opcode.SYNCHRONIZE, index=Engine.MATRIX, engines=1 << Engine.WEIGHTS)
    writer.add(Opcode.MATRIX_MULTIPLY, ub=0, acc=0, inner=1)
    times = time_program(program := writer.program())
    assert (times.start[1], times.end[1], times.start[4]) == (12, 13, 16)
    assert stalls(program, times)[:, 1].tolist() == [0, 0, 0, 0, 3]
