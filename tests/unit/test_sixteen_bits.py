"""16-bit activations: the arithmetic by hand, the layout, the verifier, the time, and what they gain."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import floor
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.machine import Writer
from tpucc.api import Executable
from tpucc.explain.quality import Accuracy, quality
from tpucc.ir import Quantisation
from tpucc.ir.dtypes import I8, I16
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.layers.parameters import fitting_scales, function_table, requantisation
from tpucc.machines.v1 import Flag, Function, Opcode
from tpucc.numerics import INT32_MAX, AnyArray, affine_parameters, interpolate, quantise, quantise_weights
from tpucc.runtime.check import compare_executors, compare_with_reference, random_inputs
from tpucc.sim.fast.execute import Simulator
from tpucc.sim.interpret import Interpreter
from tpucc.sim.memories import halves, joined

PROGRAMS = Path(__file__).parents[2] / "programs"
MLP = """
weights random(seed=3)
model mlp(x: f32[{batch}, {size}]) -> f32[{batch}, {size}]:
    weight a: f32[{size}, {size}]
    weight b: f32[{size}, {size}]
    return relu(relu(x @ a) @ b)
"""


def compiled(text: str, bits: int, target: str = "tpu_v1") -> Executable:
    return tpucc.compile_source(text, activation_bits=bits, target=target)


def test_interpolation_by_hand() -> None:
    """Every int16, one by one, in Python's numbers."""
    points = np.random.default_rng(0).integers(-32768, 32768, 257).astype(np.int16)
    values = np.arange(-32768, 32768).astype(np.int16)
    found = interpolate(values, points, I16).tolist()
    for q, result in zip(values.tolist(), found, strict=True):
        place, f = divmod(q + 32768, 256)
        left, right = int(points[place]), int(points[place + 1])
        assert result == floor(left + (right - left) * f / 256 + 0.5)


def test_a_table_is_near_its_function() -> None:
    x, y = Quantisation(8 / 32768, 0), Quantisation(1 / 32767, 0)
    integers = np.arange(-32768, 32768).astype(np.int16)
    found = interpolate(integers, function_table(np.tanh, x, y, I16), I16)
    assert np.abs(found / 32767 - np.tanh(integers / 4096)).max() < 4e-4


def test_parameters_are_symmetric() -> None:
    assert affine_parameters(-2.0, 1.0, I16) == (float(np.float32(2 / 32767)), 0)
    assert affine_parameters(0.0, 0.0, I16) == (2.0**-24, 0)
    assert quantise(np.array([1e9, -1e9, 0.25]), 0.5, 0, I16).tolist() == [32767, -32768, 0]


@each(product([True, False], [0.0, 3.0]))
def test_deep_weights_leave_room_for_16_bits(per_channel: bool, bias: float) -> None:
    """Uniform weights 2,000 deep would overflow; scaled down, no input can, and more than six bits are left."""
    generator = np.random.default_rng(1)
    real = generator.uniform(-1, 1, (2000, 5)).astype(np.float32)
    real[:, 4] *= 1e-3
    x, offsets = Quantisation(1 / 32768, 0), np.full(5, bias, np.float32)
    scales = fitting_scales(real, offsets, x, per_channel, I16)
    weights = quantise_weights(real, scales)
    folded = requantisation(weights, scales, offsets, x, Quantisation(1.0, 0), I16).bias
    largest = np.abs(weights.astype(np.int64)).sum(axis=0) * 32768 + np.abs(folded.astype(np.int64))
    assert largest.max() <= INT32_MAX
    assert largest.max() > 0.95 * INT32_MAX
    assert np.abs(weights[:, 0]).max() > 40


def test_bytes_of_16_bit_values() -> None:
    values = np.array([[-32768, -1, 0, 255, 256, 32767]], np.int16)
    low, high = halves(values)
    np.testing.assert_array_equal(values.astype("<i2").view(np.int8).reshape(-1, 2).T, np.concatenate([low, high]))
    np.testing.assert_array_equal(joined(low, high), values)


def wide_program(stride: int = 2) -> Program:
    """Two wide rows times a tile, activated, and added to what they came from; all signs and bytes matter."""
    writer = Writer(rows=4)
    writer.block(multiplier=0.01, low=-32768, high=32767)
    writer.tile(np.random.default_rng(4).integers(-127, 128, (4, 4)))
    writer.add(Opcode.READ_HOST_MEMORY, host=0, dest=3, inner=4)
    writer.add(Opcode.READ_WEIGHTS, index=0)
    writer.add(Opcode.SYNCHRONIZE, index=2, engines=1)
    writer.add(Opcode.MATRIX_MULTIPLY, Flag.SWITCH | Flag.WIDE, ub=3, acc=0, inner=2)
    writer.add(Opcode.SET_CONFIGURATION, index=0)
    writer.add(Opcode.SYNCHRONIZE, index=3, engines=0b101)
    writer.add(Opcode.ACTIVATE, Flag.WIDE, acc=0, dest=10, inner=2, dest_stride=stride)
    steps = {"ub_stride": 2, "ub2_stride": 2, "dest_stride": 2}
    writer.add(Opcode.VECTOR, Flag.WIDE, function=Function.ADD, ub=10, ub2=3, dest=20, inner=2, **steps)
    writer.add(Opcode.SYNCHRONIZE, index=0, engines=0b1000)
    writer.add(Opcode.WRITE_HOST_MEMORY, ub=20, host=4, inner=4)
    writer.add(Opcode.INTERRUPT_HOST)
    program = writer.program()
    ports = ((replace(port, shape=(2, 4), splits=(2,), format=I16),) for port in (program.inputs[0], program.outputs[0]))
    inputs, outputs = ports
    return replace(program, inputs=inputs, outputs=outputs)


def test_a_program_by_hand() -> None:
    program, x = wide_program(), np.array([[1000, -2000, 30000, -32768], [7, -255, 256, 32767]], np.int16)
    assert verify(program) == ()
    products = x.astype(np.int64) @ program.tiles[0].astype(np.int64)
    hidden = np.clip(np.rint(products.astype(np.float32) * np.float32(0.01)), -32768, 32767)
    wanted = np.clip(hidden + x, -32768, 32767).astype(np.int16)
    for executor in (Interpreter(program), Simulator(program)):
        np.testing.assert_array_equal(executor.run({"x": x})["y"], wanted)


def test_text_and_binary_forms_keep_the_width() -> None:
    program = wide_program()
    text = disassemble(program)
    assert "wide" in text
    assert "type=i16" in text
    assert assemble(text, "wide.asm") == program
    assert decode(encode(program), "wide.tpub") == program


def test_effects_have_both_rows() -> None:
    touched = effects(wide_program().instructions)
    opcodes = wide_program().instructions["opcode"].tolist()
    activate, vector = opcodes.index(Opcode.ACTIVATE), opcodes.index(Opcode.VECTOR)
    assert touched.target.rows(activate).tolist() == [10, 11, 12, 13]
    assert touched.source2.rows(vector).tolist() == [3, 4, 5, 6]
    assert touched.rows[vector] == 2


def broken(program: Program, opcode: Opcode, **fields: int) -> set[str]:
    code = program.instructions.copy()
    index = int(np.flatnonzero(code["opcode"] == opcode)[0])
    for name, value in fields.items():
        code[name][index] = value
    return {violation.code for violation in verify(replace(program, instructions=code))}


def test_the_verifier_knows_of_widths() -> None:
    program = wide_program()
    assert "V0904" in broken(program, Opcode.ACTIVATE, flags=0)
    assert "V0307" in broken(program, Opcode.ACTIVATE, dest_stride=1)
    assert broken(program, Opcode.READ_WEIGHTS, flags=int(Flag.WIDE)) == {"V0202"}
    port = replace(program.outputs[0], format=I8, shape=(4, 4), splits=(4,))
    assert {violation.code for violation in verify(replace(program, outputs=(port,)))} == {"V0904"}
    heavy = program.tiles.copy()
    heavy[...] = 127
    blocks = program.blocks.copy()
    blocks["bias"] = INT32_MAX - 32768 * 127 * 4 + 1
    assert {violation.code for violation in verify(replace(program, tiles=heavy, blocks=blocks))} == {"V0901"}


def test_products_take_twice_the_cycles() -> None:
    """A matrix unit that is never idle but for its fill is half as fast; so is the activation unit, and the link moves twice the bytes."""
    narrow, wide = (compiled(MLP.format(batch=4000, size=512), bits) for bits in (8, 16))
    assert 1.9 < wide.stats["cycles"] / narrow.stats["cycles"] < 2.1
    active = [exe.stats["breakdown"]["array_active"] * exe.stats["cycles"] for exe in (narrow, wide)]
    assert active[1] == pytest.approx(2 * active[0])
    assert wide.stats["host_bytes"] == {way: 2 * size for way, size in narrow.stats["host_bytes"].items()}


def test_a_narrow_batch_still_waits_for_weights() -> None:
    narrow, wide = (compiled(MLP.format(batch=8, size=512), bits) for bits in (8, 16))
    assert wide.stats["cycles"] < 1.05 * narrow.stats["cycles"]


def quantised_weights(exe: Executable) -> dict[str, AnyArray]:
    """The weights that the layers of a model without biases have, in real numbers."""
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    layers = exe.compilation.layers
    found = {}
    for node in layers:
        if node.op == "fc":
            x, w, _, multiplier = layers.operands(node)
            assert x.type.quantisation is not None
            assert node.type.quantisation is not None
            scale = multiplier.attributes.value.data * node.type.quantisation.scale / x.type.quantisation.scale  # type: ignore[attr-defined]
            found[w.name] = w.attributes.value.data * scale  # type: ignore[attr-defined]
    return found


def signal_to_noise(exe: Executable) -> float:
    """Decibels of the output over its error, against float64 with the same int8 weights: what the activations alone lose.

    The inputs are smaller than those of the calibration, so that nothing saturates.
    """
    inputs = {"x": np.float32(0.7) * random_inputs(exe.runtime, 5)["x"]}
    weights = quantised_weights(exe)
    real = np.maximum(np.maximum(inputs["x"].astype(np.float64) @ weights["a"], 0) @ weights["b"], 0)
    error = next(iter(exe.run(inputs).values())) - real
    return float(10 * np.log10((real**2).sum() / (error**2).sum()))


def test_sixteen_bits_are_nearer_to_the_real_numbers() -> None:
    narrow, wide = (signal_to_noise(compiled(MLP.format(batch=64, size=200), bits)) for bits in (8, 16))
    assert wide > narrow + 20


@pytest.mark.long
@pytest.mark.parametrize("name", ["04_digits_mlp", "06_digits_lstm"])
def test_digits_are_recognised_at_least_as_well(name: str) -> None:
    narrow, wide = (tpucc.compile(PROGRAMS / f"{name}.tpu", activation_bits=bits) for bits in (8, 16))
    with np.load(PROGRAMS / f"{name}_test.npz") as held_out:
        inputs = {key: held_out[key] for key in held_out.files if key != "labels"}
        labels = held_out["labels"]
    shares = []
    for exe in (narrow, wide):
        assert exe.compilation is not None
        assert exe.compilation.graph is not None
        measured = quality(exe.runtime, exe.compilation.graph, inputs, labels)
        assert isinstance(measured, Accuracy)
        shares.append(measured.quantised)
    assert shares[1] >= shares[0]


EXPLICIT = """
weights random(seed=1)
activations {held}
model m(x: f32[8, 30]):
    weight w: f32[30, 20]
    h = dequantize(quantize(x @ dequantize(quantize(w, 0.01)), {scale}, {zero}, bits={bits}))
    return relu(h), h
"""


def test_parameters_of_the_source_are_kept() -> None:
    exe = tpucc.compile_source(EXPLICIT.format(held="i16", scale=0.0005, zero=-300, bits=16))
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    assert str(exe.compilation.layers).count("scale 0.0005000000237487257 zero -300")
    inputs = random_inputs(exe.runtime, 1)
    compared = compare_with_reference(exe.runtime, exe.compilation.layers, inputs) + compare_executors(exe.runtime, inputs)
    assert not [c for c in compared if c.unequal]


@pytest.mark.parametrize(("held", "bits"), [("i16", 8), ("i8", 16)])
def test_quantize_of_another_width_is_refused(held: str, bits: int) -> None:
    with pytest.raises(tpucc.CompileError) as caught:
        tpucc.compile_source(EXPLICIT.format(held=held, scale=0.05, zero=0, bits=bits))
    assert {d.code for d in caught.value.diagnostics} == {"E0807"}
