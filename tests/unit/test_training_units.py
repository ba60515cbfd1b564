"""Two matrix units: column blocks are dealt to them in turn, and the bits stay those of the reference."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support import dense_steps, map_steps
from tests.support.cases import each
from tests.support.command_line import run
from tests.unit.test_training_machine import NET, POOLED, PROGRAMS, WIDE, differences, of_images, places, session
from tests.unit.test_training_tables import WORDS
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.machines.v2.instructions import Opcode
from tpucc.machines.v2.places import Flag
from tpucc.machines.v3.machine import SECOND, V3
from tpucc.sim.timing import time_program
from tpucc.target import load_target
from tpucc.training.lowering.lower import lower
from tpucc.training.timing.step_time import StepTime

TARGET = load_target("tpu_v3")
ALONE = load_target("tpu_v2", {"clock_hz": TARGET.clock_hz, "weight_bandwidth": TARGET.weight_bandwidth})
"""The same core with one unit."""
PRODUCTS = """\
weights random(seed=1)
model net(x: f32[512, 512]) -> f32[512, 512]:
    weight w: f32[512, 512] = "w"
    weight v: f32[512, 512] = "v"
    return relu(x @ w) @ v
optimizer sgd(rate=0.1)
train(x: f32[512, 512], goal: f32[512, 512]) -> f32[]:
    return mean_squared_error(net(x), goal)
"""


@cache
def program() -> Program:
    return lower(session(NET).step, TARGET).program


@pytest.mark.long
@each([("04_digits_mlp", 1, 1), ("04_digits_mlp", 2, 2), ("05_digits_cnn", 1, 1)])
def test_ten_steps_leave_the_same_files(name: str, cores: int, microbatches: int, tmp_path: Path) -> None:
    words = ["train", PROGRAMS / f"{name}.tpu", "--target", "tpu_v3", "--steps", "10", "-D", "batch=16", "--quiet"]
    words += ["--cores", str(cores), "--microbatches", str(microbatches)]
    for executor in ("machine", "reference"):
        assert run(*words, "--executor", executor, "-o", tmp_path / executor) == 0
    for file in ("state.npz", "weights.npz", "history.json"):
        assert (tmp_path / "machine" / file).read_bytes() == (tmp_path / "reference" / file).read_bytes()


@each([NET, WIDE, WORDS, of_images(POOLED)])
def test_the_bits_are_those_of_the_reference(text: str) -> None:
    assert differences(session(text), 2, TARGET) == []


@each([dense_steps, map_steps])
def test_random_steps(sources: ModuleType) -> None:
    for seed in range(5):
        text, microbatches = sources.random_source(seed)
        assert (seed, differences(session(text, microbatches), 2, TARGET)) == (seed, [])


def test_text_and_binary() -> None:
    made = program()
    assert made.machine is V3
    assert {*made.instructions["opcode"].tolist()} >= {*SECOND, *SECOND.values()}
    assert assemble(disassemble(made), "net.asm") == made
    assert decode(encode(made), "net.tpub") == made


TWO_BLOCKS = """
.target {target}
.memory x input rows=1000
.memory w input rows=384
.memory y output rows=3000
.layer fc forward weights=128x384

    load hbm=x y=0 rows=1384
    synchronize engine=weights wait=memory
    synchronize engine=matrix wait=memory
    {second}synchronize engine=weights_2 wait=memory
    {second}synchronize engine=matrix_2 wait=memory
    push_weights a=1000 rows=128 lanes=128
    matrix_multiply a=0 y=2000 rows=1000, switch
    push_weights{two} a=1128 rows=128 lanes=128
    matrix_multiply{two} a=0 y=3000 rows=1000, switch
    push_weights a=1256 rows=128 lanes=128
    matrix_multiply a=0 y=4000 rows=1000, switch
    synchronize engine=memory wait=matrix
    {second}synchronize engine=memory wait=matrix_2
    store a=2000 hbm=y rows=3000
    halt
"""


def test_two_units_work_at_the_same_time() -> None:
    """The second tile is pushed and used beside the first one; the third is pushed meanwhile, and waits for the first unit."""
    starts = {}
    for target, second, two in (("tpu_v2", "; ", ""), ("tpu_v3", "", "_2")):
        made = assemble(TWO_BLOCKS.format(target=target, second=second, two=two), "blocks.asm")
        assert verify(made) == ()
        times = time_program(made)
        starts[target] = (times.start - times.end[0])[np.isin(made.instructions["opcode"], [*SECOND, *SECOND.values()])].tolist()
    assert starts["tpu_v2"] == [0, 128, 128, 1128, 1128, 2128]
    assert starts["tpu_v3"] == [0, 128, 0, 128, 128, 1128]


def test_a_tile_stays_with_its_unit() -> None:
    made = program()
    first = next(index for index in places(made, Opcode.MATRIX_MULTIPLY) if index > places(made, SECOND[Opcode.MATRIX_MULTIPLY])[0])
    code = np.insert(made.instructions, first, made.instructions[first])
    code["flags"][first] &= ~np.uint8(Flag.SWITCH)
    wrong = replace(made, instructions=code, layer_of=np.insert(made.layer_of, first, made.layer_of[first]), residents=())
    assert verify(made) == ()
    assert any(found.code == "V0604" and "another matrix unit has taken the last tile" in found.message for found in verify(wrong))


def test_a_step_of_wide_products_takes_less_time() -> None:
    step = session(PRODUCTS).step
    both, alone = (time_program(lower(step, target).program).makespan for target in (TARGET, ALONE))
    assert both < 0.75 * alone
    narrow = lower(session(of_images(POOLED)).step, TARGET).program  # one column block each: nothing for the second unit
    assert not {*narrow.instructions["opcode"].tolist()} & {*SECOND.values()}


def test_the_clock_lies_between_the_groups_bounds() -> None:
    step = session((PROGRAMS / "04_digits_mlp.tpu").read_text()).step
    seconds, groups = time_program(lower(step, TARGET).program).makespan / TARGET.clock_hz, StepTime(step, TARGET)
    assert 0.95 * groups.overlapped_seconds <= seconds <= 1.1 * groups.seconds
