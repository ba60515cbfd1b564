"""Execution: the prepared executor, the plain interpreter and a machine of Python integers agree in every bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest

import tpucc
from tests.support.cases import LONG, SOAK, each, one_of
from tests.support.machine import TINY, Writer
from tests.support.random_machine import RandomProgram
from tests.support.slow_machine import WITHOUT_VALUES, slow_run
from tpucc.diagnostics import InputError
from tpucc.ir.dtypes import I16
from tpucc.isa.effects import Effects, effects
from tpucc.isa.program import Program
from tpucc.machines.v1 import Flag, Function, Opcode
from tpucc.machines.v1.functions import functions, matrix_product, used_size
from tpucc.numerics import AnyArray, DeviceInts, Int8, requantise
from tpucc.runtime.check import random_inputs
from tpucc.sim.fast.execute import GroupProducts, Simulator, prepare
from tpucc.sim.fast.groups import ChainGroup, find_groups
from tpucc.sim.fast.lanes import Narrow
from tpucc.sim.fast.pool import RegularPool
from tpucc.sim.fast.product import JoinedProduct, Requantisation
from tpucc.sim.fast.walks import Grid, regular, taken
from tpucc.sim.interpret import Interpreter
from tpucc.target import load_target

ROOT = Path(__file__).resolve().parents[2]
V1 = load_target("tpu_v1")


def run_all(program: Program, x: DeviceInts) -> list[list[int]]:
    """The output, after asserting that all executors give it, the prepared one twice."""
    expected = Interpreter(program).run({"x": x})["y"]
    simulator = Simulator(program)
    assert np.array_equal(simulator.run({"x": x})["y"], expected)
    assert np.array_equal(simulator.run({"x": x})["y"], expected)
    assert slow_run(program, {"x": x})["y"] == expected.tolist()
    values: list[list[int]] = expected.tolist()
    return values


def random_rows(program: Program, seed: int) -> DeviceInts:
    (port,) = program.inputs
    return np.random.default_rng(seed).integers(port.format.low, port.format.high + 1, port.shape).astype(port.format.numpy)


def products(program: Program) -> list[JoinedProduct]:
    return [product for steps in prepare(program) for step in steps if isinstance(step, GroupProducts) for product in step.products]


@each({f"seed {seed}, {'16' if wide else '8'} bits": (seed, wide) for seed in range(200) for wide in (False, True)}, usual=80)
def test_random_programs(seed: int, wide: bool) -> None:
    program = RandomProgram(seed, length=80, wide=wide).make()
    run_all(program, random_rows(program, seed))


def test_random_programs_have_every_kind_of_group() -> None:
    """The test before is worth something only if groups of several chains, live accumulators and overlaps occur in it."""
    programs = [RandomProgram(seed, length=80).make() for seed in range(40)]
    found = [(touched := effects(program.instructions), find_groups(touched, program.target)) for program in programs]
    items = [item for _, each in found for item in each]
    groups = [item for item in items if isinstance(item, tuple)]
    assert len(items) > 2 * len(groups) > 200
    assert sum(overlaps(touched, item) for touched, each in found for item in each if isinstance(item, tuple)) > 20
    assert sum(len(group) > 1 for group in groups) > 50
    assert sum(chain.live and chain.activate >= 0 for group in groups for chain in group) > 20


def overlaps(touched: Effects, group: ChainGroup) -> bool:
    """Whether some chain of a group writes rows of the unified buffer that a multiply of the group reads."""
    read = {row for chain in group for index in chain.multiplies for row in touched.source.rows(index).tolist()}
    return any(row in read for chain in group if chain.activate >= 0 for row in touched.target.rows(chain.activate).tolist())


def test_random_programs_have_every_instruction_that_changes_values() -> None:
    """But those that write weights or interrupt for a host step, which need a host."""
    records = np.concatenate([RandomProgram(seed, length=80).make().instructions for seed in range(40)])
    drawn = {Opcode(int(number)) for number in np.unique(records["opcode"])}
    assert drawn >= {*Opcode} - {*WITHOUT_VALUES, Opcode.WRITE_WEIGHTS}
    for opcode, windows in ((Opcode.VECTOR, False), (Opcode.POOL, True)):
        of = records[records["opcode"] == opcode]
        assert {*np.unique(of["function"]).tolist()} >= {int(function) for function in functions(windows=windows)}


@dataclass
class Dense:
    """A layer of one row chunk on a machine: x [M, levels * mxu] in column blocks, weights [levels * mxu, blocks * mxu]."""

    weights: AnyArray
    bias: AnyArray
    multiplier: float = 2.0**-20
    mxu: int = 256
    rows: int = 2
    zero: int = 0
    unsigned: bool = False

    def program(self) -> Program:
        levels, blocks = self.weights.shape[0] // self.mxu, self.weights.shape[1] // self.mxu
        writer = Writer(msgspec.structs.replace(V1, mxu=self.mxu), rows=self.rows * max(levels, blocks))
        writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=writer.rows)
        for block in range(blocks):
            columns = slice(block * self.mxu, (block + 1) * self.mxu)
            for level in range(levels):
                writer.add(Opcode.READ_WEIGHTS, index=writer.tile(self.weights[level * self.mxu : (level + 1) * self.mxu, columns]))
                flags = Flag.SWITCH | (Flag.ACCUMULATE if level else 0) | (Flag.UNSIGNED if self.unsigned else 0)
                writer.add(Opcode.MATRIX_MULTIPLY, flags, ub=level * self.rows, acc=0, inner=self.rows)
            writer.add(
                Opcode.SET_CONFIGURATION,
                index=writer.block(bias=self.bias[columns], multiplier=np.float32(self.multiplier), zero=self.zero),
            )
            writer.add(Opcode.ACTIVATE, acc=0, dest=100 + block * self.rows, inner=self.rows)
        writer.add(Opcode.WRITE_HOST_MEMORY, ub=100, host=writer.rows, inner=self.rows * blocks)
        return writer.program()


def check_dense(layer: Dense, x: Int8, rounds_once: bool, parts: int) -> None:
    program = layer.program()
    (product,) = products(program)
    assert (product.rounds_once, len(product.weights.parts)) == (rounds_once, parts)
    run_all(program, x)


def dense_rows(layer: Dense, values: Sequence[int], seed: int = 0) -> Int8:
    shape = layer.program().inputs[0].shape
    return np.random.default_rng(seed).choice(np.array(values), shape).astype(np.int8)


@pytest.mark.parametrize(("levels", "expected", "parts"), [(3, True, 1), (4, True, 2), (5, True, 2), (7, False, 3)])
def test_depth_is_cut_at_the_exact_bound(levels: int, expected: bool, parts: int) -> None:
    """1,024 products of -128 and -128 are 2^24: the first sum that isn't below the bound. Three 256-deep tiles are."""
    layer = Dense(np.full((levels * 256, 256), -128), np.arange(256), rows=1)
    check_dense(layer, dense_rows(layer, [-128]), expected, parts)
    check_dense(layer, dense_rows(layer, [-128, -127, 127]), expected, parts)


def test_real_weights_stay_one_product_far_deeper_than_a_tile() -> None:
    weights = np.clip(np.rint(np.random.default_rng(0).normal(0, 20, (1536, 256))), -127, 127)
    layer = Dense(weights, np.arange(-128, 128), 2.0**-12, rows=1)
    check_dense(layer, dense_rows(layer, range(-128, 128)), True, 1)


def test_a_bias_that_float32_does_not_hold() -> None:
    bias = np.where(np.arange(256) % 2, 2**24 + 1, -(2**25) - 3)
    one, two = Dense(np.full((256, 256), 1), bias, 1e-6), Dense(np.full((1024, 256), -128), bias, 1e-6, rows=1)
    check_dense(one, dense_rows(one, range(-128, 128)), False, 1)
    check_dense(two, dense_rows(two, [-128, 127]), False, 2)


def test_sums_beyond_2_to_24_round_once() -> None:
    """The sum of the parts and the bias is an odd number above 2^24; the conversion to float32 is its only rounding."""
    rng = np.random.default_rng(3)
    layer = Dense(rng.integers(-128, -100, (1280, 256)), rng.integers(-3000, 3000, 256), 2.0**-17.3, rows=1)
    check_dense(layer, dense_rows(layer, range(-128, -110)), True, 2)


def test_tile_that_exceeds_the_bound_alone() -> None:
    layer = Dense(np.full((1024, 1024), -128), np.zeros(1024), mxu=1024, rows=1)
    check_dense(layer, dense_rows(layer, [-128, 127]), False, 1)


def test_unsigned_inputs() -> None:
    layer = Dense(np.full((512, 512), 127), np.arange(512), unsigned=True)
    check_dense(layer, dense_rows(layer, [-1, -128, 127, 0]), True, 1)
    layer = Dense(np.full((768, 256), 127), np.arange(256), unsigned=True, rows=1)
    check_dense(layer, dense_rows(layer, [-1]), True, 2)


def test_ties_go_to_even_before_the_zero_point_is_added() -> None:
    """Sums 1, 3, 5, -1, -3 halved are ties: 0, 2, 2, 0, -2; then the odd zero point."""
    writer = Writer(rows=5)
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=5)
    writer.add(Opcode.READ_WEIGHTS, index=writer.tile(np.eye(4)))
    writer.add(Opcode.MATRIX_MULTIPLY, Flag.SWITCH, ub=0, acc=0, inner=5)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block(multiplier=0.5, zero=7))
    writer.add(Opcode.ACTIVATE, acc=0, dest=5, inner=5)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=5, host=5, inner=5)
    x = np.repeat(np.array([[1], [3], [5], [-1], [-3]], np.int8), 4, axis=1)
    assert [row[0] for row in run_all(writer.program(), x)] == [7, 9, 9, 7, 5]


@each([(127, 100), (-128, -90), (3, 6)])
def test_clamp_and_table(value: int, clamped: int) -> None:
    table = np.arange(-128, 128)[::-1]
    for has_table, expected in ((0, clamped), (1, -1 - clamped)):
        writer = Writer(rows=1)
        block = writer.block(scale_a=1.0, scale_b=1.0, low=-90, high=100, has_table=has_table, table=table)
        writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=1)
        writer.add(Opcode.SET_CONFIGURATION, index=block)
        writer.add(Opcode.VECTOR, function=Function.ADD, ub=0, ub2=0, dest=1, inner=1)
        writer.add(Opcode.WRITE_HOST_MEMORY, ub=1, host=1, inner=1)
        assert run_all(writer.program(), np.full((1, 4), value, np.int8)) == [[expected] * 4]


def test_products_of_16_bits_are_rounded_before_they_are_scaled() -> None:
    """Thousands of them: scaling one factor first would round a few to another integer."""
    target = msgspec.structs.replace(TINY, mxu=64, unified_buffer_rows=320)
    writer = Writer(target, rows=160, wide=True)
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=160)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block(scale_a=2.9e-5, zero_a=-7, zero_b=5, low=-32768, high=32767))
    strides = {"ub_stride": 2, "ub2_stride": 2, "dest_stride": 2}
    writer.add(Opcode.VECTOR, Flag.WIDE, function=Function.MULTIPLY, ub=0, ub2=2, dest=160, inner=79, **strides)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=160, host=160, inner=160)
    program = writer.program()
    found = run_all(program, random_rows(program, 11))
    assert np.ptp(found) > 40_000


def test_recurrent_steps_share_their_weights() -> None:
    """The same tiles, asked for again in every step, are widened once."""
    writer, tiles = Writer(rows=4), [0, 1]
    for seed in tiles:
        writer.tile(np.random.default_rng(seed).integers(-128, 128, (4, 3)))
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=4)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block(multiplier=2.0**-8, bias=[1, 2, 3, 4]))
    for _ in range(6):
        for tile in tiles:
            writer.add(Opcode.READ_WEIGHTS, index=tile)
            writer.add(Opcode.MATRIX_MULTIPLY, Flag.SWITCH | (Flag.ACCUMULATE if tile else 0), ub=2 * tile, acc=0, inner=2)
        writer.add(Opcode.ACTIVATE, acc=0, dest=2, inner=2)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=0, host=4, inner=4)
    program = writer.program()
    made = products(program)
    assert len(made) == 6
    assert len({id(product.weights) for product in made}) == 1
    run_all(program, random_rows(program, 0))


def test_an_accumulating_multiply_may_change_rows_of_an_older_chain() -> None:
    """Rows 0 to 3 build up, then row 1 is overwritten: the activate of all four must not take the older sums."""
    writer = Writer(rows=8)
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=8)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block())
    writer.add(Opcode.READ_WEIGHTS, index=writer.tile(np.eye(4)))
    writer.add(Opcode.MATRIX_MULTIPLY, Flag.SWITCH, ub=0, acc=0, inner=4)
    writer.add(Opcode.MATRIX_MULTIPLY, ub=5, acc=1, inner=1)
    writer.add(Opcode.ACTIVATE, acc=0, dest=8, inner=4)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=8, host=8, inner=4)
    program = writer.program()
    x = np.arange(32).reshape(8, 4).astype(np.int8)
    assert run_all(program, x)[:4] == x[[0, 5, 2, 3]].tolist()


def test_a_transfer_does_not_overtake_a_postponed_one() -> None:
    """The result is written to the host and read back elsewhere, while the group that makes it is still open."""
    writer = Writer(rows=8)
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=8)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block())
    writer.add(Opcode.READ_WEIGHTS, index=writer.tile(-np.eye(4)))
    writer.add(Opcode.MATRIX_MULTIPLY, Flag.SWITCH, ub=0, acc=0, inner=2)
    writer.add(Opcode.ACTIVATE, acc=0, dest=8, inner=2)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=8, host=8, inner=2)
    writer.add(Opcode.READ_HOST_MEMORY, host=8, dest=20, inner=2)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=20, host=14, inner=2)
    x = np.arange(32).reshape(8, 4).astype(np.int8)
    assert run_all(writer.program(), x)[6:] == (-x[:2]).tolist()


def test_vectors_that_continue_each_others_rows() -> None:
    writer = Writer(rows=12)
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=12)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block(scale_a=0.5, scale_b=0.25, zero=3))
    for first in (0, 3, 6):
        writer.add(Opcode.VECTOR, function=Function.ADD, ub=first, ub2=3 + first, dest=20 + first, inner=3)
    for first in (0, 3):
        writer.add(Opcode.VECTOR, function=Function.COPY, ub=20 + first, dest=23 + first, inner=3)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=20, host=12, inner=12)
    program = writer.program()
    run_all(program, random_rows(program, 5) * np.int8(1))


def test_the_watch_sees_every_instruction() -> None:
    program = RandomProgram(1).make()
    seen: list[tuple[int, Opcode]] = []
    Interpreter(program).run({"x": random_rows(program, 1)}, lambda index, instruction, _: seen.append((index, instruction.opcode)))
    assert seen == list(enumerate(map(Opcode, program.instructions["opcode"].tolist())))


@pytest.mark.parametrize("executor", [Interpreter, Simulator])
def test_inputs_that_do_not_fit(executor: type[Interpreter] | type[Simulator]) -> None:
    program = RandomProgram(1).make()
    x = random_rows(program, 0)
    for inputs in ({}, {"x": x[1:]}, {"x": x.astype(np.int16)}, {"x": x, "z": x}):
        with pytest.raises(InputError) as raised:
            executor(program).run(inputs)
        assert [d.code for d in raised.value.diagnostics] == ["E0480"]


def test_outputs_are_the_callers_own() -> None:
    program = RandomProgram(2).make()
    simulator = Simulator(program)
    first = simulator.run({"x": random_rows(program, 0)})["y"]
    kept = first.copy()
    simulator.run({"x": random_rows(program, 9)})
    assert np.array_equal(first, kept)
    assert first.shape == (TINY.unified_buffer_rows // 2, TINY.mxu)


@pytest.mark.parametrize(
    "name", one_of(3, ["02_iris", "05_digits_cnn", "06_digits_lstm", pytest.param("09_cifar_resnet", marks=SOAK)], LONG)
)
def test_lanes_out_of_use_hold_the_same_bits(name: str) -> None:
    """All memories after a run are those of the interpreter: the lanes that no layer uses too, in a second run as in the first."""
    program = tpucc.compile(ROOT / "programs" / f"{name}.tpu", params={"batch": 2}).runtime.program
    inputs = {port.name: np.random.default_rng(3).integers(-128, 128, port.shape).astype(np.int8) for port in program.inputs}
    plain, fast = Interpreter(program), Simulator(program)
    for _ in range(2):
        assert all(np.array_equal(a, b) for a, b in zip(plain.run(inputs).values(), fast.run(inputs).values(), strict=True))
        assert np.array_equal(plain.memories["ub"], fast._memories["ub"])
        assert np.array_equal(plain.memories["host"], fast._memories["host"])
    steps = [step for steps in prepare(program) for step in steps if isinstance(step, Narrow)]
    assert any(0 < step.lanes.stop < program.target.mxu for step in steps) or name == "02_iris"


DEPTHWISE = """
weights random(seed=1)
model m(x: f32[2, 7, 9, 21] in [-1.0, 1.0]):
    weight kernel: f32[3, 3, 1, 21]
    weight bias: f32[21]
    return relu(conv2d(x, kernel, groups=21, padding="same") + bias)
"""


@pytest.mark.parametrize("at_once", [2**16, 2 * 9 * 21, 1])
def test_windows_are_computed_on_the_channels(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of zeros beside an image have other constants than its own rows, in lanes without weights. Any number of lines at once gives
    the same."""
    monkeypatch.setattr("tpucc.sim.fast.pool.CACHED", at_once)
    exe = tpucc.compile_source(DEPTHWISE, settings={"depthwise": {"unit": "vector"}})
    assert {step.used for steps in prepare(exe.runtime.program) for step in steps if isinstance(step, RegularPool)} == {21}
    inputs = random_inputs(exe.runtime)
    fast, plain = (exe.runtime.ports(inputs, plain=plain) for plain in (False, True))
    assert all(np.array_equal(fast[name], plain[name]) for name in plain)


@pytest.mark.parametrize(
    ("side", "bias", "multiplier", "expected"),
    [(33, 1 - 33**2 * 127**2, 1.0, 1), (32, 0, 2.0**-24, 1), (31, -(2**24) - 1, 0.5 / 1277247.5, -1)],
)
def test_windows_whose_sums_float32_does_not_hold(side: int, bias: int, multiplier: float, expected: int) -> None:
    """A large window's products add up to an odd number beyond 2^24; others may reach 2^24; a smaller one's bias is such a number."""
    rows = side**2 + 1
    writer = Writer(msgspec.structs.replace(V1, mxu=4), rows=rows)
    walk = {f"{name}_{step}": count for name in ("ub", "ub2") for step, count in (("pitch", side), ("stride", 1))}
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=0, inner=rows)
    writer.add(Opcode.SET_CONFIGURATION, index=writer.block(bias=bias, multiplier=np.float32(multiplier)))
    writer.add(Opcode.POOL, function=Function.WEIGHTED, ub=0, ub2=0, dest=rows, inner=2, window_outer=side, window_inner=side, **walk)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=rows, host=rows, inner=2)
    assert run_all(program := writer.program(), np.full((rows, 4), 127, np.int8))[:2] == [[expected] * 4] * 2
    assert not any(isinstance(step, RegularPool) for steps in prepare(program) for step in steps)


@pytest.mark.parametrize("zeros", [[0, 0, 0], [-128, 5, 127]])
def test_sums_are_requantised_in_place_as_elsewhere(zeros: list[int]) -> None:
    """Sums far beyond the bounds, some infinite once they are scaled, and ties; one zero point for all columns, or one for each."""
    sums = np.array([[-(2**31), 2**31 - 1, 0], [-(2**24) - 1, 3, 2**24 + 2], [-1, 1, -3], [255, -257, 131]], np.int32)
    for scale in (np.float32(0.5), np.float32(1), np.float32(1e32)):
        for low, high in ((-128, 127), (-32768, 32767)):
            found = sums.astype(np.float32)
            with np.errstate(over="ignore"):
                expected = [requantise(sums[:, column], scale, zero, low, high, I16) for column, zero in enumerate(zeros)]
                Requantisation.of(np.full(3, scale), np.array(zeros), np.array([low] * 3), high).apply(found)
            assert found.T.tolist() == np.array(expected).tolist()


@each({f"seed {seed}": (seed,) for seed in range(60)}, usual=25)
def test_random_programs_leave_the_same_memory(seed: int) -> None:
    program = RandomProgram(seed, length=80).make()
    x = random_rows(program, seed)
    plain, fast = Interpreter(program), Simulator(program)
    plain.run({"x": x})
    fast.run({"x": x})
    assert np.array_equal(plain.memories["ub"], fast._memories["ub"])
    assert np.array_equal(plain.memories["host"], fast._memories["host"])


def test_rows_that_lie_regularly_are_a_view() -> None:
    memory = np.arange(40 * 4, dtype=np.int8).reshape(40, 4)
    for rows in ([3, 4, 5, 13, 14, 15], [1, 3, 5], [0, 9], [2, 3, 6, 7, 10, 11], [5, 4, 3], [1, 1, 2], [1, 2, 4, 5, 8, 9], [7]):
        places = regular(np.array(rows, np.int64))
        found = taken(memory, places, slice(1, 3))
        assert found.reshape(-1, 2).tolist() == memory[rows, 1:3].tolist()
        assert np.shares_memory(found, memory) == isinstance(places, Grid)


@each([(0, 0), (1, 8), (3, 5), (8, 8)])
def test_zero_rows_and_columns_of_a_tile_add_nothing(depth: int, width: int) -> None:
    rows, tile = np.arange(-12, 12, dtype=np.int8).reshape(3, 8), np.zeros((8, 8), np.int8)
    tile[:depth, :width] = -7
    assert used_size(tile) == (depth, width)
    assert np.array_equal(matrix_product(rows, tile), rows.astype(np.int64) @ tile.astype(np.int64))
