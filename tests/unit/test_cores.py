"""Several cores: the same bits as one, what can't be divided and what a student reads then, time with a shared link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.networks import ORDINARY, network
from tpucc.api import Executable
from tpucc.diagnostics import InputError, ProgramError
from tpucc.explain.device_outputs import QuantisedOutput
from tpucc.ir import TensorType
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.isa.program import Program
from tpucc.layers.kinds import LAYERS
from tpucc.machines.v1 import Opcode
from tpucc.numerics import AnyArray
from tpucc.ops import OPS
from tpucc.passes.calibrate import JOINED_VALUES
from tpucc.passes.divide_batch import rule_of
from tpucc.passes.input_arrays import random_array
from tpucc.runtime.check import compare_executors, compare_with_reference, random_inputs

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
HEAD = "weights random(seed=4)\nmodel m("
DENSE = HEAD + "x: f32[12, 300]):\n    weight w: f32[300, 270]\n    weight b: f32[270]\n    return relu(x @ w + b)\n"
SOURCES = {
    "dense, ragged": DENSE,
    "two inputs, two outputs": HEAD
    + """x: f32[12, 30], y: f32[12, 30]):
    weight w: f32[30, 7]
    h = tanh(x @ w)
    return h, softmax(h * 0.5 + y @ w)
""",
    "argmax drops an axis": HEAD + "x: f32[12, 5, 9]):\n    weight w: f32[9, 4]\n    return argmax(x @ w, axis=1), argmax(x @ w)\n",
    "images": HEAD
    + """x: f32[12, 9, 9, 3]):
    weight k: f32[3, 3, 3, 5]
    weight l: f32[3, 3, 5, 5]
    weight w: f32[80, 6]
    weight gamma: f32[5]
    weight beta: f32[5]
    weight mean: f32[5]
    weight variance: f32[5]
    h = relu(batch_norm(conv2d(x, k, stride=2, padding="same"), gamma, beta, mean, variance))
    h = relu(h + conv2d(h, l, padding=1))
    g = max_pool(h, 2, stride=1)
    return flatten(g) @ w, global_avg_pool(h), avg_pool(h, 3, padding="same")
""",
    "a recurrent network from zeros": HEAD
    + """ids: i32[12, 6] in [0, 10]):
    weight table: f32[11, 5]
    weight k: f32[5, 8]
    weight r: f32[8, 8]
    x = embedding(ids, table)
    h = zeros([12, 8])
    for t in range(6):
        h = tanh(x[:, t] @ k + h @ r)
    return h
""",
    "a step of the host in the middle": HEAD
    + """x: f32[12, 20]):
    weight w: f32[20, 20]
    h = softmax(relu(x @ w))
    return h @ w, h
""",
    "slices with steps": HEAD
    + """x: f32[12, 6, 10]):
    weight w: f32[10, 8]
    weight v: f32[4, 5]
    h = relu(x @ w)
    a, b = split(h, [2, 4], axis=1)
    return h[:, ::2, ::2] @ v, h[:, 1:6:3, ::-1] * 0.5, a[:, ::-1], b
""",
    "attention": HEAD
    + """x: f32[12, 6, 10]):
    weight w: f32[10, 8]
    weight v: f32[8, 5]
    weight g: f32[8]
    h = layer_norm(x @ w, g, g)
    heads = transpose(reshape(h, (12, 6, 2, 4)), (0, 2, 1, 3))
    mixed = softmax(heads @ transpose(heads, (0, 1, 3, 2))) @ heads
    return reshape(transpose(mixed, (0, 2, 1, 3)), (12, 6, 8)) @ v, mixed
""",
    "products that broadcast": HEAD
    + """x: f32[12, 6, 4]):
    weight w: f32[4, 4]
    h = x @ w
    c = full([12, 4, 3], 0.25)
    return h @ c, zeros([5]) + full([6], 0.5) @ h @ full([2, 4, 5], 0.5)[0], reshape(h, (12, 1, 6, 4)) @ full([3, 4, 2], 2.0)
""",
    "lanes become rows on the host": HEAD
    + """x: f32[12, 6, 10]):
    weight w: f32[6, 6]
    weight v: f32[10, 10]
    h = transpose(relu(transpose(x, (0, 2, 1)) @ w), (0, 2, 1))
    return h @ v
""",
    "time first": HEAD
    + """x: f32[12, 4, 10]):
    weight w: f32[10, 6]
    t = transpose(x, (1, 0, 2))
    h = relu(t @ w)
    return transpose(h, (1, 0, 2)), h[2]
""",
    "batch and time as one axis": HEAD
    + """x: f32[12, 4, 10]):
    weight w: f32[10, 6]
    h = relu(reshape(x, (-1, 10)) @ w)
    return h, reshape(h, (12, 4, 6)), reshape(h, (12, 24))
""",
    "steps behind each other and apart again": HEAD
    + """x: f32[12, 10], y: f32[12, 10]):
    weight w: f32[10, 6]
    h = sigmoid(concat([x, y, x], axis=0) @ w)
    return h[12:24] + h[0:12], reshape(h, (3, 12, 6))[2]
""",
    "a constant on the left": HEAD
    + """x: f32[12, 10]):
    weight w: f32[6, 10]
    return transpose(relu(w @ transpose(x, (1, 0))), (1, 0))
""",
    "constants of the batch's size": HEAD
    + """x: f32[12, 10]):
    weight w: f32[10, 10]
    c = full([12, 10], 0.25)
    alternate = concat([constant([[1.0], [2.0]]), constant([[1.0], [2.0]])], axis=0)
    ones4 = concat([alternate, alternate, alternate], axis=0)
    return (x @ w + c) * ones4, concat([relu(x @ w), c], axis=1), pad(x @ w, ((0, 0), (1, 2)))
""",
    "one constant as weights and beside the batch": HEAD
    + """x: f32[12, 12]):
    c = full([12, 12], 0.5)
    return relu(x @ c) + c
""",
    "explicit quantisation": HEAD
    + """x: f32[12, 10]):
    weight w: f32[10, 6]
    q = quantize(x @ w, 0.05, 3)
    return relu(dequantize(q)), q
""",
    "everything on the host": HEAD + "x: f32[12, 8], n: i32[12]):\n    return x, softmax(x), n\n",
}


def one_and_several(source: str, cores: int, **options: int) -> tuple[Executable, Executable]:
    return on_one_core(source, options.get("level", 2)), tpucc.compile_source(source, cores=cores, **options)  # type: ignore[arg-type]


@cache
def on_one_core(source: str, level: int) -> Executable:
    return tpucc.compile_source(source, level=level)


def integers_of(exe: Executable, inputs: Mapping[str, AnyArray]) -> dict[str, QuantisedOutput]:
    """The integers of the outputs; none where the host computes all, or where cores don't share the rows of what it starts from."""
    try:
        return exe.run_quantized(inputs)
    except InputError:
        return {}


def require_equal(one: Executable, several: Executable, seed: int = 0) -> None:
    """The same outputs, the same integers, and each core's integers as the reference has them."""
    inputs = random_inputs(one.runtime, seed)
    assert several.runtime.inputs == one.runtime.inputs
    assert several.runtime.outputs == one.runtime.outputs
    wanted, got = one.run(inputs), several.run(inputs)
    assert wanted.keys() == got.keys()
    for name, array in wanted.items():
        assert array.dtype == got[name].dtype
        np.testing.assert_array_equal(array, got[name], strict=True)
    integers, found = integers_of(one, inputs), integers_of(several, inputs)
    assert found.keys() & wanted.keys() == integers.keys() & wanted.keys()
    for name in found.keys() & integers.keys():
        np.testing.assert_array_equal(found[name].values, integers[name].values, strict=True)
        assert (found[name].scale, found[name].zero_point) == (integers[name].scale, integers[name].zero_point)
    assert not any(c.unequal for c in compare_with_reference(several.runtime, several.compilation.layers, inputs))


DIVIDED = [
    pytest.param(name, cores, level, marks=pytest.mark.soak if (row + column) % 4 else ())
    for row, name in enumerate(SOURCES)
    for column, (cores, level) in enumerate(((2, 0), (3, 2), (6, 2), (12, 1)))
]
"""Every source for one number of cores; in `make soak`, for all."""


@pytest.mark.parametrize(("name", "cores", "level"), DIVIDED)
def test_the_same_bits_as_one_core(name: str, cores: int, level: int) -> None:
    if name == "constants of the batch's size" and cores > 6:
        cores = 6  # a constant alternates from item to item: see the next test
    require_equal(*one_and_several(SOURCES[name], cores, level=level))


@pytest.mark.parametrize("level", [0, 2])
def test_a_computed_constant_must_be_the_same_for_every_core(level: int) -> None:
    """Refused once it is computed, still at its place in the source."""
    with pytest.raises(tpucc.CompileError) as caught:
        tpucc.compile_source(SOURCES["constants of the batch's size"], cores=12, level=level)
    assert [(d.code, d.labels[0].span.line) for d in caught.value.diagnostics] == [("E0831", 7)]
    assert "ones4 differs from item to item" in caught.value.render()


@pytest.mark.long
def test_programs_on_real_data_give_the_same_bits() -> None:
    for name in ("04_digits_mlp", "05_digits_cnn", "06_digits_lstm"):
        path, fewer = PROGRAMS / f"{name}.tpu", {"batch": 24}
        require_equal(tpucc.compile(path, params=fewer), tpucc.compile(path, params=fewer, cores=8))


@pytest.mark.long
@pytest.mark.parametrize("first", one_of(3, (1000, 1008, 1016)))
def test_random_networks_give_the_same_bits(first: int) -> None:
    bounds = replace(ORDINARY, batches=(2, 4, 6))
    for seed in range(first, first + 8):
        require_equal(*one_and_several(network(seed, bounds), 2, level=(0, 1, 2, 2)[seed % 4]), seed)


@pytest.mark.parametrize("name", SOURCES)
def test_batches_that_are_measured_in_one_have_the_ranges_of_one_after_the_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven batches and a half, of which the smallest and the largest percent of the values are left out."""
    types = on_one_core(SOURCES[name], 2).runtime.inputs
    np.savez(tmp_path / "rows.npz", **drawn_rows(types, 90))
    settings, programs = {"calibrate": {"method": "percentile", "percentile": 99.0}}, []
    for values in (0, JOINED_VALUES):
        monkeypatch.setattr("tpucc.passes.calibrate.JOINED_VALUES", values)
        exe = tpucc.compile_source(SOURCES[name], calibration=tmp_path / "rows.npz", settings=settings)
        programs.append(encode(exe.runtime.program))
    assert programs[0] == programs[1]


def drawn_rows(types: Mapping[str, TensorType], rows: int) -> dict[str, AnyArray]:
    generator = np.random.default_rng(0)
    return {name: random_array(generator, replace(type_, shape=(rows, *type_.shape[1:]))) for name, type_ in types.items()}


def test_quantisation_is_that_of_the_whole_batch(tmp_path: Path) -> None:
    """Calibrated on one extreme item among others, cores have its range, wherever it falls."""
    (tmp_path / "m.tpu").write_text(DENSE)
    x = np.random.default_rng(0).standard_normal((12, 300)).astype(np.float32)
    x[7] *= 50
    np.savez(tmp_path / "c.npz", x=x)
    one, four = (tpucc.compile(tmp_path / "m.tpu", calibration=tmp_path / "c.npz", cores=cores) for cores in (1, 4))
    assert four.program.blocks.tobytes() == one.program.blocks.tobytes()
    assert four.program.tiles.tobytes() == one.program.tiles.tobytes()
    np.testing.assert_array_equal(one.run(x=x)["out"], four.run(x=x)["out"])


def test_every_core_gets_its_own_items() -> None:
    four = tpucc.compile_source(DENSE, cores=4)
    x = np.random.default_rng(1).standard_normal((12, 300)).astype(np.float32)
    whole = four.run(x=x)["out"]
    for core in range(4):
        moved = x.copy()
        moved[3 * core : 3 * core + 3] += 1
        changed = np.flatnonzero((four.run(x=moved)["out"] != whole).any(axis=1))
        assert set(changed) == set(range(3 * core, 3 * core + 3))


@pytest.mark.parametrize("rows", [1, 5, 12, 31])
def test_other_batches_run_in_rounds_of_the_whole_batch(rows: int) -> None:
    one, three = one_and_several(DENSE, 3)
    x = np.random.default_rng(rows).standard_normal((rows, 300)).astype(np.float32)
    assert three.runtime.batch == 12
    np.testing.assert_array_equal(one.run(x=x)["out"], three.run(x=x)["out"], strict=True)


def test_inputs_of_a_wrong_shape_are_refused_in_the_models_sizes() -> None:
    exe = tpucc.compile_source(SOURCES["batch and time as one axis"], cores=2)
    with pytest.raises(InputError, match=r"input x has the shape \[10, 4, 10\], and the model takes \[12, 4, 10\]"):
        exe.run(x=np.zeros((10, 4, 10)))
    with pytest.raises(InputError, match="E0450"):
        exe.run()


def test_every_operator_and_layer_has_a_rule_but_those_without_operands() -> None:
    lacking = {name for name in (*OPS, *LAYERS) if rule_of(name) is None}
    assert lacking == {name for name, op in OPS.items() if not op.operands}


MESSAGES = {
    "indivisible": (
        "x: f32[6, 4]):\n    return softmax(x)\n",
        8,
        """m.tpu:2:9: error E0508: batch 6 is not divisible by 8 cores
   2 | model m(x: f32[6, 4]):
     |         ^^^^^^^^^^^^
help: batch 6 can't be divided among 8 cores: 8 and 16 can""",
    ),
    "between two": (
        "x: f32[20, 4]):\n    return softmax(x)\n",
        8,
        """m.tpu:2:9: error E0508: batch 20 is not divisible by 8 cores
   2 | model m(x: f32[20, 4]):
     |         ^^^^^^^^^^^^^
help: batch 20 can't be divided among 8 cores: 16 and 24 can""",
    ),
    "no common batch": (
        "x: f32[8, 4], y: f32[4]):\n    return x + y\n",
        2,
        """m.tpu:2:9: error E0830: the inputs have no batch in common that could be divided among cores
   2 | model m(x: f32[8, 4], y: f32[4]):
     |         ^^^^^^^^^^^^ x is f32[8, 4]
m.tpu:2:23: note: y is f32[4]
   2 | model m(x: f32[8, 4], y: f32[4]):
     |                       ^^^^^^^^^
help: the batch is the first size, the same one in every input""",
    ),
    "softmax": (
        "x: f32[8, 4]):\n    return softmax(x, axis=0)\n",
        2,
        """m.tpu:3:12: error E0831: the batch can't be divided among 2 cores: softmax works along axis 0, and that is the batch
   3 |     return softmax(x, axis=0)
     |            ^^^^^^^^^^^^^^^^^^
help: every core runs the same program on its own items of the batch; cores don't talk to each other""",
    ),
}


def message(rest: str, cores: int) -> str:
    with pytest.raises(tpucc.Error) as caught:
        tpucc.compile_source(HEAD + rest, name="m.tpu", cores=cores)
    return caught.value.render()


@each(list(MESSAGES))
def test_messages(name: str) -> None:
    rest, cores, wanted = MESSAGES[name]
    assert message(rest, cores) == wanted


REASONS = {
    "argmax works along axis 0, and that is the batch": "x: f32[8, 4]):\n    return argmax(x, axis=0)\n",
    "the slice takes 0:4 of axis 0, which is a part of the batch": "x: f32[8, 4]):\n    return x[0:4]\n",
    "the slice takes axis 0 in steps of -1, and that is": "x: f32[8, 4]):\n    return x[::-1]\n",
    "the slice takes 3:4 of axis 0, which is a part of the batch": "x: f32[8, 4]):\n    return x[3] * 2.0\n",
    "the product adds up over the batch": "x: f32[8, 4]):\n    weight w: f32[3, 8]\n    return w @ x\n",
    "matmul brings different items": "x: f32[8, 8, 4]):\n    return x @ transpose(x, (1, 2, 0))\n",
    "layer_norm works along axis 0": "x: f32[8]):\n    g = ones([8])\n    return layer_norm(x, g, g)\n",
    "add brings different items of the batch together": "x: f32[8, 8]):\n    return x + transpose(x, (1, 0))\n",
    "mul brings different items of the batch together": "x: f32[8]):\n    return reshape(x, (8, 1)) * x\n",
    "concat joins the batch with a constant": "x: f32[8, 4]):\n    return concat([x, zeros([2, 4])], axis=0)\n",
    "concat joins values in which": "x: f32[8, 8]):\n    return concat([x, transpose(x, (1, 0))], axis=1)\n",
    "pad adds items of zeros": "x: f32[8, 4]):\n    return pad(x, ((0, 1), (0, 0)))\n",
    "reshape spreads the batch over several axes of f32[2, 4, 4]": "x: f32[8, 4]):\n    return reshape(x, (2, 4, 4))\n",
    "reshape spreads the batch over several axes of f32[16, 2]": "x: f32[32]):\n    return reshape(x, (16, 2))\n",
    "in the output out, f32[4, 8], it is not the first axis but axis 1": "x: f32[8, 4]):\n    return transpose(x, (1, 0))\n",
    "in the output out, f32[16, 4], rows 0 and 8 belong to the same item, and": "x: f32[8, 4]):\n    return concat([x, relu(x)], axis=0)\n",
    "in the output out, f32[24, 2], rows 0 and 8 belong to the same item, and": (
        "x: f32[8, 3, 2]):\n    return reshape(transpose(x, (1, 0, 2)), (24, 2))\n"
    ),
    "the output c depends on no input": "x: f32[8, 4]):\n    c = zeros([8, 4])\n    return x, c\n",
    "the constant c differs from item to item": "x: f32[2, 4]):\n    c = constant([[1.0], [2.0]])\n    return x * c\n",
    "batch_norm has a constant for each channel": "x: f32[8]):\n    g = ones([8])\n    return batch_norm(x, g, g, g, g)\n",
    "where max_pool has no separate items": "x: f32[8, 4, 4, 2]):\n    return max_pool(transpose(x, (1, 0, 2, 3)), 2)\n",
    "where conv2d has no separate items": (
        "x: f32[8, 4, 4, 2]):\n    weight k: f32[2, 2, 2, 3]\n    return conv2d(transpose(x, (1, 0, 2, 3)), k)\n"
    ),
    "mean averages over the batch": "x: f32[8, 4]):\n    return x - mean(x, axis=0)\n",
    "sum adds up over the batch": "x: f32[8, 4]):\n    return x - sum(x)\n",
    "cross_entropy averages over the batch": "x: f32[8, 4], n: i32[8] in [0, 3]):\n    return cross_entropy(softmax(x), n) + x\n",
    "embedding needs a constant where": "x: f32[8, 4], n: i32[8] in [0, 7]):\n    return embedding(n, x)\n",
}


@each(list(REASONS))
def test_what_mixes_items_is_refused_by_the_operator(reason: str) -> None:
    text = message(REASONS[reason], 2)
    assert text.startswith("m.tpu:")
    assert "error E0831: the batch can't be divided among 2 cores: " in text
    assert reason in text


def test_each_place_is_told_once_with_the_call_that_led_there() -> None:
    rest = "x: f32[8, 4]):\n    return f(x), f(x * 2.0), x[0:3]\ndef f(x):\n    return softmax(x, axis=0)\n"
    text = message(rest, 2)
    assert text.count("E0831") == 2
    assert text.index("softmax works") < text.index("in this call") < text.index("the slice takes 0:3")


def test_what_no_output_needs_may_mix_items() -> None:
    assert tpucc.compile_source(HEAD + "x: f32[8, 4]):\n    y = x[0:3]\n    return relu(x)\n", cores=2).stats["cores"] == 2


@each([(0, "E0508"), (-3, "E0508"), (24, "E0508")])
def test_impossible_numbers_of_cores(cores: int, code: str) -> None:
    with pytest.raises(tpucc.Error) as caught:
        tpucc.compile_source(DENSE, cores=cores)
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_no_program_has_more_cores_than_the_verifier_takes() -> None:
    with pytest.raises(tpucc.UsageError, match="E0508: a program runs on 1 to 4,096 cores, found 8,192"):
        tpucc.compile_source(HEAD + "x: f32[8192, 4]):\n    return relu(x)\n", cores=8_192)


def test_a_model_without_inputs_has_no_batch() -> None:
    with pytest.raises(tpucc.CompileError, match="E0830: the model has no inputs"):
        tpucc.compile_source("model m():\n    return ones([4, 4])\n", cores=2)


def program(exe: Executable) -> Program:
    return exe.runtime.program


def test_the_link_and_the_hosts_work_are_shared_in_turn() -> None:
    """An independent count: each transfer takes its latency and the bytes of all cores; each step is done once a core."""
    exe = tpucc.compile_source(SOURCES["a step of the host in the middle"], cores=4)
    p, times = program(exe), exe.runtime.timeline
    code, lengths = p.instructions, times.end - times.start
    transfers = np.isin(code["opcode"], (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY))
    wanted = [700 + round(4 * rows * 256 * 700e6 / (10 * 2**30)) for rows in code["inner"][transfers].tolist()]
    assert lengths[transfers].tolist() == wanted
    step = lengths[(code["opcode"] == Opcode.INTERRUPT_HOST) & (code["index"] == 0)]
    assert step.tolist() == [4 * round((10e-6 + p.host_steps[0].elements / 1e9) * 700e6)]


def test_engines_of_a_core_are_its_own() -> None:
    """Cores of one program differ from one core of a quarter of the batch in the host's part alone."""
    whole, quarter = tpucc.compile_source(DENSE, cores=4), tpucc.compile_source(DENSE.replace("f32[12, 300]", "f32[3, 300]"))
    assert whole.program.instructions.tobytes() == quarter.program.instructions.tobytes()
    lengths = [exe.runtime.timeline.end - exe.runtime.timeline.start for exe in (whole, quarter)]
    own = ~np.isin(program(whole).instructions["opcode"], (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY))
    np.testing.assert_array_equal(lengths[0][own], lengths[1][own])
    assert whole.stats["cycles"] > quarter.stats["cycles"]


def test_statistics_are_of_all_cores() -> None:
    one, four = (exe.stats for exe in one_and_several(DENSE, 4))
    quarter = tpucc.compile_source(DENSE.replace("f32[12, 300]", "f32[3, 300]")).stats
    assert one.keys() == four.keys()
    assert (one["cores"], four["cores"]) == (1, 4)
    assert one["macs"] == four["macs"] == sum(layer["macs"] for layer in four["layers"]) == 12 * 300 * 270
    assert four["peak_tops"] == 4 * one["peak_tops"]
    assert four["tops"] == pytest.approx(2 * four["macs"] / four["seconds"] / 1e12)
    assert four["utilization"] == pytest.approx(four["tops"] / four["peak_tops"])
    assert four["host_bytes"] == {way: 4 * count for way, count in quarter["host_bytes"].items()}
    for key in ("instructions", "tiles", "weight_bytes", "ub_peak_bytes", "tile_fetches", "macs_per_weight_byte"):
        assert four[key] == quarter[key]
    assert sum(layer["cycles"] for layer in four["layers"]) == four["cycles"]
    parts = four["breakdown"]
    assert sum(parts[key] for key in ("array_active", "weight_stall", "weight_shift", "non_matrix")) == pytest.approx(100)


def test_the_bottleneck_names_the_cores_that_share_it() -> None:
    exe = tpucc.compile(PROGRAMS / "05_digits_cnn.tpu", cores=8)
    assert exe.stats["bottleneck"] == "host link"
    assert "at 10.7 GB/s for all 8 cores, and 1 µs besides for each transfer; " in exe.stats["explanation"]
    steps = tpucc.compile_source(SOURCES["a step of the host in the middle"], cores=4).stats
    assert steps["bottleneck"] == "host work"
    assert "the host computes 1 step, for 4 cores in turn, in " in steps["explanation"]


def test_files_and_listings_remember_the_cores(tmp_path: Path) -> None:
    exe = tpucc.compile_source(SOURCES["images"], cores=3)
    p = program(exe)
    assert decode(encode(p), "p").cores == 3
    assert assemble(disassemble(p), "p") == p
    assert "\n.cores 3\n" in disassemble(p)
    assert ".cores" not in disassemble(replace(p, cores=1))
    exe.save(tmp_path / "p.tpub")
    loaded, inputs = tpucc.load(tmp_path / "p.tpub"), random_inputs(exe.runtime)
    for name, array in exe.run(inputs).items():
        np.testing.assert_array_equal(array, loaded.run(inputs)[name], strict=True)
    assert not any(c.unequal for c in compare_executors(loaded.runtime, inputs))
    assert loaded.stats == exe.stats


def test_a_scalar_has_nothing_to_divide() -> None:
    exe = tpucc.compile_source("model m(x: f32[]):\n    return x * 2.0\n")
    forged = Executable(exe.runtime.__class__(replace(program(exe), cores=2)))
    with pytest.raises(ProgramError, match="E0708: x is a scalar, and 2 cores need a first axis"):
        forged.run(x=1.0)


def test_pictures_and_tables_say_how_many_cores() -> None:
    exe = tpucc.compile_source(DENSE, cores=4)
    assert str(exe.timeline).startswith("m on 4 cores of tpu_v1: ")
    assert repr(exe).startswith("<Executable m for 4 cores of tpu_v1: ")
    for shown in (exe.timeline, exe.memory, exe.layers, exe.program):
        assert "m, one of 4 cores: " in shown._repr_svg_()
    single = tpucc.compile_source(DENSE)
    assert not any("cores" in shown._repr_svg_() for shown in (single.timeline, single.memory, single.layers, single.program))
