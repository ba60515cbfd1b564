"""The machine's rules: compiled programs keep them all, and for each rule there is a program that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.dense import DenseNetwork
from tpucc.diagnostics import Origin
from tpucc.isa.program import HostBuffer, HostWork, Program
from tpucc.isa.verify import RULES, check, verify
from tpucc.machines.v1 import Engine, Flag, Opcode
from tpucc.runtime.check import compare_with_reference, random_inputs
from tpucc.runtime.runtime import Runtime

SOURCE = """
weights random(seed=0)
model m(x: f32[48, 300], y: f32[48, 300]):
    weight a: f32[300, 300]
    weight b: f32[300, 40]
    h = relu(x @ a)
    h = h * y
    return tanh(h @ b)
"""
ATTENTION = """
weights random(seed=0)
model m(x: f32[2, 9, 8]):
    weight k: f32[8, 8]
    return softmax(x @ transpose(x @ k, (0, 2, 1))) @ x
"""
Edit = Callable[[Program], Program]


@cache
def by_written_weights() -> Program:
    """A program that writes the weights of two products of computed values, a tile for each item of the batch."""
    exe = tpucc.compile_source(ATTENTION, settings={"write-weights": {"computed_products": "device"}})
    found: Program = exe.program.value
    return found


@cache
def compiled() -> tpucc.Executable:
    return tpucc.compile_source(SOURCE)


def program() -> Program:
    found: Program = compiled().program.value
    return found


def places(p: Program, opcode: Opcode) -> np.ndarray:
    return np.flatnonzero(p.instructions["opcode"] == opcode)


def edited(p: Program, opcode: Opcode, nth: int = 0, **fields: int) -> Program:
    """One instruction with other fields."""
    code = p.instructions.copy()
    for field, value in fields.items():
        code[field][places(p, opcode)[nth]] = value
    return replace(p, instructions=code)


def without(p: Program, opcode: Opcode, nth: int = 0) -> Program:
    """One instruction less; the memory map follows."""
    index = int(places(p, opcode)[nth])
    stays = tuple(replace(r, first=r.first - (r.first > index), last=r.last - (r.last >= index)) for r in p.residents)
    return replace(p, instructions=np.delete(p.instructions, index), layer_of=np.delete(p.layer_of, index), residents=stays)


def doubled(p: Program, opcode: Opcode, nth: int = 0) -> Program:
    """One instruction twice in a row."""
    index = int(places(p, opcode)[nth])
    stays = tuple(replace(r, first=r.first + (r.first > index), last=r.last + (r.last >= index)) for r in p.residents)
    order = np.insert(np.arange(len(p.instructions)), index, index)
    return replace(p, instructions=p.instructions[order], layer_of=p.layer_of[order], residents=stays)


def flags(p: Program, opcode: Opcode, nth: int, value: int) -> Program:
    return edited(p, opcode, nth, flags=value)


def host(p: Program, index: int, **fields: Any) -> Program:
    buffers = list(p.host)
    buffers[index] = replace(buffers[index], **fields)
    return replace(p, host=tuple(buffers))


def block(p: Program, **fields: float) -> Program:
    blocks = p.blocks.copy()
    for field, value in fields.items():
        blocks[field][0] = value
    return replace(p, blocks=blocks)


def wrong_way(p: Program) -> Program:
    """The rows that the host delivers to the second input: written to where the first one still lies."""
    reads = places(p, Opcode.READ_HOST_MEMORY)
    first = int(p.instructions["dest"][reads[0]])
    return replace(edited(p, Opcode.READ_HOST_MEMORY, len(reads) - 1, dest=first), residents=())


def dropped_waits(p: Program) -> Program:
    code = p.instructions[p.instructions["opcode"] != Opcode.SYNCHRONIZE]
    layers = p.layer_of[p.instructions["opcode"] != Opcode.SYNCHRONIZE]
    return replace(p, instructions=code, layer_of=layers, residents=())


MULTIPLY, ACTIVATE, READ, WRITE = Opcode.MATRIX_MULTIPLY, Opcode.ACTIVATE, Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY
TILE = Opcode.WRITE_WEIGHTS
BREAKS: dict[str, Edit] = {
    "V0101": lambda p: replace(p, layer_of=p.layer_of[:-1]),
    "V0102": lambda p: replace(p, layers=(replace(p.layers[0], origin=Origin()), *p.layers[1:])),
    "V0103": lambda p: host(p, 0, kind="elsewhere"),
    "V0104": lambda p: replace(p, residents=(replace(p.residents[0], rows=10**9), *p.residents[1:])),
    "V0109": lambda p: replace(p, cores=0),
    "V0105": lambda p: replace(p, target=tpucc.load_target("tpu_v1").__class__(**{**_fields(p), "weight_memory_bytes": 65536})),
    "V0106": lambda p: replace(p, inputs=(replace(p.inputs[0], splits=(7,)), *p.inputs[1:])),
    "V0107": lambda p: replace(p, inputs=(replace(p.inputs[0], scale=float("nan")), *p.inputs[1:])),
    "V0108": lambda p: replace(p, host_steps=(HostWork("", ("nowhere",), (), 0),)),
    "V0201": lambda p: _unknown_opcode(p),
    "V0202": lambda p: flags(p, ACTIVATE, 0, 1),
    "V0203": lambda p: edited(p, ACTIVATE, host=1),
    "V0204": lambda p: edited(p, Opcode.SYNCHRONIZE, engines=0),
    "V0301": lambda p: edited(p, MULTIPLY, ub=2**31),
    "V0302": lambda p: edited(p, MULTIPLY, acc=4095),
    "V0303": lambda p: edited(p, READ, inner=10**6),
    "V0304": lambda p: edited(p, Opcode.READ_WEIGHTS, index=99),
    "V0305": lambda p: edited(p, Opcode.SET_CONFIGURATION, index=99),
    "V0306": lambda p: edited(p, MULTIPLY, inner=0),
    "V0307": lambda p: edited(p, ACTIVATE, dest_stride=0),
    "V0401": lambda p: without(p, READ),
    "V0402": lambda p: flags(p, MULTIPLY, 0, 3),
    "V0403": lambda p: without(p, Opcode.SET_CONFIGURATION),
    "V0404": lambda p: edited(p, READ, host=next(b.start for b in p.host if b.kind == "output")),
    "V0501": lambda p: _added_late(p),
    "V0502": lambda p: flags(p, MULTIPLY, 1, 1),
    "V0503": lambda p: without(p, ACTIVATE, -1),
    "V0601": lambda p: without(p, Opcode.READ_WEIGHTS),
    "V0602": lambda p: replace(p, target=p.target.__class__(**{**_fields(p), "weight_fifo_tiles": 1})),
    "V0603": lambda p: doubled(p, Opcode.READ_WEIGHTS, -1),
    "V0604": lambda p: flags(p, MULTIPLY, 0, 0),
    "V0605": lambda p: edited(p, Opcode.READ_WEIGHTS, -1, index=0),
    "V0606": lambda _: without(by_written_weights(), TILE),
    "V0607": lambda _: without(by_written_weights(), Opcode.SYNCHRONIZE, _waits_for_tiles()[0]),
    "V0701": lambda p: replace(p, residents=(*p.residents, replace(p.residents[0], name="again"))),
    "V0702": lambda p: replace(p, residents=p.residents[1:]),
    "V0703": lambda p: edited(p, Opcode.VECTOR, ub=int(p.instructions["dest"][places(p, Opcode.VECTOR)[0]]) + 1),
    "V0801": dropped_waits,
    "V0802": wrong_way,
    "V0803": lambda p: _second_writer(p),
    "V0901": lambda p: replace(p, blocks=_with_bias(p, 2**31 - 1)),
    "V0902": lambda p: block(p, multiplier=np.inf),
    "V0903": lambda p: block(p, low=5, high=-5),
    "V0904": lambda p: edited(p, Opcode.MATRIX_MULTIPLY, flags=Flag.SWITCH | Flag.WIDE),
    "V0907": lambda p: replace(p, host=(replace(p.host[0], half=True), *p.host[1:])),
    "V0908": lambda p: replace(p, expressions=("(a + b)",)),
    "V1001": lambda p: without(p, Opcode.HALT),
    "V1002": lambda p: without(p, WRITE),
    "V1003": lambda p: doubled(p, WRITE),
    "V1004": lambda p: edited(p, WRITE, host=0),
    "V1005": lambda p: edited(p, Opcode.INTERRUPT_HOST, index=1),
}


def _fields(p: Program) -> dict[str, Any]:
    return {field: getattr(p.target, field) for field in p.target.__struct_fields__}


def _waits_for_tiles() -> list[int]:
    """Which of the synchronisations make the weight fetch wait."""
    p = by_written_weights()
    return np.flatnonzero(p.instructions["index"][places(p, Opcode.SYNCHRONIZE)] == Engine.WEIGHTS).tolist()


def _unknown_opcode(p: Program) -> Program:
    code = p.instructions.copy()
    code["opcode"][places(p, ACTIVATE)[0]] = 200
    return replace(p, instructions=code)


def _with_bias(p: Program, bias: int) -> np.ndarray:
    blocks = p.blocks.copy()
    blocks["bias"][:] = bias
    return blocks


def _added_late(p: Program) -> Program:
    """The first multiply of the second column adds to what the first activate has already handed on."""
    activated = int(p.instructions["acc"][places(p, ACTIVATE)[0]])
    late = next(i for i, at in enumerate(places(p, MULTIPLY)) if at > places(p, ACTIVATE)[0])
    return edited(p, MULTIPLY, late, acc=activated, flags=3)


def _second_writer(p: Program) -> Program:
    """The host reads into the rows that the last activate writes, without waiting for it."""
    target = int(p.instructions["dest"][places(p, ACTIVATE)[-1]])
    last = int(places(p, ACTIVATE)[-1])
    extra = p.instructions[places(p, READ)[0] : places(p, READ)[0] + 1].copy()
    extra["dest"] = target
    code = np.insert(p.instructions, last + 1, extra[0])
    return replace(p, instructions=code, layer_of=np.insert(p.layer_of, last + 1, p.layer_of[last]), residents=())


OF_FLOATS = {"V0905", "V0906", "V0909", "V1006"}
"""The rules of a machine for floats, which v1's programs can't break: `test_training_machine.py` does."""


def test_every_rule_has_a_program_that_breaks_it() -> None:
    assert set(BREAKS) == set(RULES) - OF_FLOATS


def test_sums_of_scaled_values_are_numbers() -> None:
    """The difference of two infinite products would be none, whose integer depends on the processor."""
    assert {each.code for each in verify(block(program(), scale_a=3.4e38))} == {"V0902"}
    assert verify(block(program(), scale_a=2.0**110)) == ()


def test_the_compiled_program_keeps_every_rule() -> None:
    assert verify(program()) == verify(by_written_weights()) == ()


WRITTEN: dict[str, tuple[Edit, str]] = {
    "a tile with weights of its own": (lambda p: edited(p, TILE, index=0), "V0304 writes tile 0; tiles 1 to 4 can be written"),
    "a tile that isn't there": (lambda p: edited(p, TILE, -1, index=2**32 - 1), "V0304 writes tile 4,294,967,295; tiles 1 to 4 can be"),
    "more rows than a tile has": (lambda p: edited(p, TILE, inner=257), "V0304 writes 257 rows of a tile of 256"),
    "no rows": (lambda p: edited(p, TILE, inner=0), "V0306 has a count of 0"),
    "rows of no host buffer": (lambda p: edited(p, TILE, host=10**6), "V0303 moves the host's rows 1,000,000 to"),
    "rows that the host fills later": (
        lambda p: edited(p, TILE, host=next(b.start for b in p.host if b.name.startswith("input:softmax"))),
        "V0404 reads row",
    ),
    "a tile twice": (lambda p: edited(p, TILE, 1, index=1), "V0606 writes tile 1 again"),
    "a tile that nothing writes": (lambda p: edited(p, TILE, 1, index=1), "V0606 asks for tile 2, which nothing has written"),
    "a tile too early": (lambda p: _late_write(p), "V0606 asks for tile 1, which nothing has written"),
    "a fetch that waits for nothing": (BREAKS["V0607"], "V0607 asks for tile 1, but doesn't wait for instruction"),
    "more tiles than can be simulated": (lambda p: replace(p, written_tiles=2**40), "V0105 1,099,511,627,776 written tiles can't be"),
    "fewer than none": (lambda p: replace(p, written_tiles=-1), "V0105 -1 written tiles can't be simulated"),
    "more than weight memory holds": (
        lambda p: replace(p, target=p.target.__class__(**{**_fields(p), "weight_memory_bytes": 4 * 65536})),
        "V0105 tiles and parameter blocks take",
    ),
    "a layer's tile that isn't there": (lambda p: replace(p, written_tiles=3), "V0102 layer matmul.2 names tile 4"),
}


def _late_write(p: Program) -> Program:
    """The first write of a tile stands at the end of its run of writes."""
    code, first = p.instructions.copy(), int(places(p, TILE)[0])
    fetch = int(np.flatnonzero((code["opcode"] == Opcode.READ_WEIGHTS) & (code["index"] == code["index"][first]))[0])
    order = [*range(first), *range(first + 1, fetch + 1), first, *range(fetch + 1, len(code))]
    return replace(p, instructions=code[order], layer_of=p.layer_of[order], residents=())


@each(list(WRITTEN))
def test_a_fault_of_written_tiles_is_named(what: str) -> None:
    edit, wanted = WRITTEN[what]
    found = [f"{violation.code} {violation.message}" for violation in verify(edit(by_written_weights()))]
    code, text = wanted.split(" ", 1)
    assert any(line.startswith(code) and text in line for line in found), found


def test_the_first_part_that_weight_memory_has_no_room_for_is_named() -> None:
    p = by_written_weights()
    for room, about in (
        (1, ("tile", "0")),
        (p.tiles.nbytes, ("written_tiles", "")),
        (p.tiles.nbytes + 65536 * p.written_tiles, ("block", "")),
    ):
        (found,) = verify(replace(p, target=p.target.__class__(**{**_fields(p), "weight_memory_bytes": room})))
        assert (found.code, found.about) == ("V0105", about)


@each(list(BREAKS))
def test_a_broken_rule_is_named(code: str) -> None:
    found = verify(BREAKS[code](program()))
    assert code in {violation.code for violation in found}
    with pytest.raises(tpucc.ProgramError) as caught:
        check(BREAKS[code](program()))
    assert caught.value.exit_status == 3


@each(product([2**31 - 1, -(2**31 - 1), -(2**31)], [0, None]))
def test_a_bias_of_either_sign_may_overflow(bias: int, column: int | None) -> None:
    """Products of the same sign may come on top of it, whatever its sign is, and whatever the other columns' are."""
    p = program()
    blocks = p.blocks.copy()
    blocks["bias"][:, slice(None) if column is None else column] = bias
    found = verify(replace(p, blocks=blocks))
    assert {violation.code for violation in found} == {"V0901"}
    assert all("column 0 " in violation.message for violation in found)


def small(seed: int) -> bool:
    """Whether a network is one for a machine of 4×4 elements, which takes hundreds of thousands of instructions for others."""
    network = DenseNetwork(seed)
    return bool(network.source()) and network.macs < 150_000


SEEDS = [*(("tpu_v1", seed) for seed in range(25)), *(("tiny", seed) for seed in range(80) if small(seed))]
"""Of those, 20 are small: a network that doesn't fit fails."""


@pytest.mark.parametrize(("target", "seed"), one_of(6, SEEDS))
def test_compiled_networks_keep_every_rule(target: str, seed: int) -> None:
    assert verify(tpucc.compile_source(DenseNetwork(seed).source(), target=target).program.value) == ()


def test_no_synchronize_of_a_compiled_program_can_be_dropped() -> None:
    p = program()
    waits = places(p, Opcode.SYNCHRONIZE)
    assert len(waits) > 3
    for nth in range(len(waits)):
        assert {v.code[:3] for v in verify(without(p, Opcode.SYNCHRONIZE, nth))} == {"V08"}


def mutant(seed: int) -> Program:
    """A compiled program with one field of one instruction, one tile or one parameter changed: a seeded compiler bug."""
    p, choose = program(), np.random.default_rng(seed)
    index = int(choose.integers(len(p.instructions)))
    code = p.instructions.copy()
    kind = choose.integers(5)
    if kind == 0:
        code["flags"][index] ^= 1 << int(choose.integers(3))
    elif kind == 1:
        field = str(choose.choice(["ub", "ub2", "dest", "acc", "host", "index"]))
        code[field][index] += np.uint32(choose.integers(1, 8))
    elif kind == 2:
        field = str(choose.choice(["inner", "outer", "ub_stride", "dest_stride", "ub_pitch"]))
        code[field][index] = max(0, int(code[field][index]) + int(choose.integers(-1, 2)))
    elif kind == 3:
        return without(p, Opcode(int(code["opcode"][index])), int(np.flatnonzero(places(p, code["opcode"][index]) == index)[0]))
    else:
        other = int(choose.integers(len(code)))
        code[[index, other]] = code[[other, index]]
    return replace(p, instructions=code)


@pytest.mark.long
@pytest.mark.parametrize("first", one_of(4, range(0, 400, 100)))
def test_seeded_bugs_are_refused_or_caught_by_the_reference(first: int) -> None:
    exe = compiled()
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    inputs = random_inputs(exe.runtime)
    wanted = exe.run(inputs)["out"]
    refused = 0
    for seed in range(first, first + 100):
        p = mutant(seed)
        if verify(p):
            refused += 1
            continue
        runtime = Runtime(p)
        differ = bool((runtime.run(inputs)["out"] != wanted).any())
        caught = any(c.unequal for c in compare_with_reference(runtime, exe.compilation.layers, inputs))
        assert differ <= caught, f"seed {seed}"
    assert refused >= 60


def test_rows_of_sums_that_an_activation_leaves_out_are_named() -> None:
    last = places(program(), ACTIVATE)[-1]
    found = verify(edited(program(), ACTIVATE, -1, inner=int(program().instructions["inner"][last]) - 1))
    (message,) = (violation.message for violation in found if violation.code == "V0503")
    assert message.endswith("leaves a sum in accumulator row 143 that nothing activates")


def test_the_row_that_is_overwritten_too_early_is_one_that_is_read() -> None:
    """The host overwrites rows 0 to 47; the product that it doesn't wait for reads those from 8 on."""
    first = int(places(program(), MULTIPLY)[2])
    assert program().instructions["ub"][first] == 0
    found = verify(wrong_way(edited(program(), MULTIPLY, 2, ub=8, inner=40)))
    (message,) = (violation.message for violation in found if violation.code == "V0802")
    assert "overwrites unified-buffer row 8, but doesn't wait for" in message


def test_messages_name_the_instruction_and_its_text() -> None:
    (first, *_) = verify(edited(program(), MULTIPLY, acc=4095))
    assert "matrix_multiply" in str(first.message)


def test_host_buffers_of_one_name_are_refused() -> None:
    p = program()
    buffers = (*p.host, HostBuffer(p.host[0].name, "scratch", p.host_rows, 1))
    assert "V0103" in {v.code for v in verify(replace(p, host=buffers))}
