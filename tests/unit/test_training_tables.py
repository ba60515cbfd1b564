"""Embeddings on the training machine: rows of a table in HBM, by their indices, and rows that are added to rows of a table."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.command_line import run
from tests.support.seeds import at_length
from tests.unit.test_training_machine import PROGRAMS, TARGET, Edit, differences, edited, first_row, places, session, without
from tpucc.diagnostics import InputError
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.machines.v2.instructions import Opcode
from tpucc.machines.v2.machine import V2
from tpucc.sim.interpret import Interpreter
from tpucc.sim.timing import time_program
from tpucc.target import with_overrides
from tpucc.training.device import Device
from tpucc.training.lowering.lower import lower
from tpucc.training.timing.step_time import StepTime

WORDS = """\
param batch = 12
param rows = 11
weights random(seed=1)
model net(ids: i32[batch, 7] in [0, rows - 1]) -> f32[batch, 5]:
    weight table: f32[rows, 140] = "table"
    weight v: f32[980, 5] = "v"
    return softmax(reshape(tanh(embedding(ids, table * 2.0)), [batch, 980]) @ v)
optimizer adam(rate=0.1)
train(ids: i32[batch, 7] in [0, rows - 1], label: i32[batch] in [0, 4]) -> f32[]:
    return cross_entropy(net(ids), label)
"""
"""84 indices of 11 rows, which have two column blocks, the last one ragged; the table is computed."""


@cache
def program() -> Program:
    return lower(session(WORDS).step, TARGET).program


# The bits are those of the reference.


@pytest.mark.long
@each([(1, 1), (2, 1), (1, 2), (2, 2)])
def test_ten_steps_of_an_lstm_leave_the_same_files(microbatches: int, cores: int, tmp_path: Path) -> None:
    """A table of 15,000 rows, of which Adam keeps two more: together they are larger than vector memory."""
    words = ["train", PROGRAMS / "10_imdb_lstm.tpu", "--target", "tpu_v2", "--steps", "10", "-D", "time=20", "--quiet"]
    words += ["--microbatches", str(microbatches), "--cores", str(cores)]
    for executor in ("machine", "reference"):
        assert run(*words, "--executor", executor, "-o", tmp_path / executor) == 0
    for file in ("state.npz", "weights.npz", "history.json"):
        assert (tmp_path / "machine" / file).read_bytes() == (tmp_path / "reference" / file).read_bytes()


@each([(1, 1), (2, 1), (4, 1), (1, 2), (2, 2)])
def test_a_ragged_table_whose_rows_are_chosen_several_times(microbatches: int, cores: int) -> None:
    assert differences(session(WORDS, microbatches, cores=cores), 3) == []


@each(
    [
        "mean(embedding(ids, table), axis=1) @ v",
        "mean(embedding(reshape(ids, [6, 4]), table), axis=0) @ v",  # a view of the indices
        "mean(embedding(transpose(ids, (1, 0))[1:4], table), axis=0) @ v",  # a part of them
        "mean(embedding(ids, table), axis=1) @ v * one_hot(ids[:, 2], n=9)",  # and of numbers of classes
        "(mean(embedding(ids, table), axis=1) + embedding(one, table)) @ v",  # two readers of a table, whose gradients are added up
        "mean(embedding(ids, table), axis=1) @ transpose(table, (1, 0))",  # a table that is a factor, too
    ]
)
def test_other_places_of_a_lookup(answer: str) -> None:
    text = f"""
weights random(seed=4)
model net(ids: i32[4, 6] in [0, 8], one: i32[4] in [0, 8]):
    weight table: f32[9, 3]
    weight v: f32[3, 9]
    return {answer}
optimizer momentum(rate=0.1)
train(ids: i32[4, 6] in [0, 8], one: i32[4] in [0, 8]) -> f32[]:
    y = net(ids, one)
    return sum(y * y)
"""
    assert differences(session(text), 3) == []


def random_source(seed: int) -> tuple[str, int]:
    """A source, and the microbatches of its training."""
    draw = np.random.default_rng(seed)
    rows, columns, count = (int(draw.choice(sizes)) for sizes in ((3, 2, 7, 128, 300), (1, 3, 127, 128, 129, 300), (1, 4, 9)))
    microbatches = int(draw.choice([1, 2, 4]))
    batch = microbatches * int(draw.choice([1, 3, 32]))
    table = ("table", "table * 3.0", "tanh(table)")[int(draw.integers(3))]
    optimizer = ("sgd(rate=0.05)", "momentum(rate=0.02)", "adam(rate=0.01)")[int(draw.integers(3))]
    return (
        f"weights random(seed={seed % 1000})\n"
        f"model net(ids: i32[{batch}, {count}] in [0, {rows - 1}]) -> f32[{batch}, 2]:\n"
        f"    weight table: f32[{rows}, {columns}]\n    weight v: f32[{count * columns}, 2]\n"
        f"    return reshape(embedding(ids, {table}), [{batch}, {count * columns}]) @ v\n"
        f"optimizer {optimizer}\n"
        f"train(ids: i32[{batch}, {count}] in [0, {rows - 1}], goal: f32[{batch}, 2]) -> f32[]:\n"
        f"    return mean_squared_error(net(ids), goal)\n"
    ), microbatches


def test_random_tables() -> None:
    _random_tables(range(10))


@at_length(300, 30)
def test_random_tables_at_length(seeds: range) -> None:
    _random_tables(seeds)


def _random_tables(seeds: range) -> None:
    for seed in seeds:
        text, microbatches = random_source(seed)
        assert (seed, differences(session(text, microbatches), 2)) == (seed, [])


@each([900, 600, 300])
def test_a_table_that_vector_memory_has_no_room_for(rows: int) -> None:
    """It is computed, filled with zeros and changed in parts."""
    text = WORDS.replace("rows = 11", "rows = 700")
    assert differences(session(text), 2, with_overrides(TARGET, {"unified_buffer_rows": rows})) == []


LOOKED_UP = """\
weights random(seed=1)
model net(ids: i32[6, 4] in [0, 10]):
    weight table: f32[11, 5]
    return embedding({}, table)
optimizer sgd(rate=0.1)
train(ids: i32[6, 4] in [0, 10]) -> f32[]:
    return mean(net(ids))
"""


@each([("ids", (3, 2)), ("transpose(ids[2:], (1, 0))", (2, 1))])
def test_an_index_that_does_not_exist_is_said_as_the_reference_says_it(indices: str, place: tuple[int, int]) -> None:
    of = session(LOOKED_UP.format(indices))
    device, given = Device(lower(of.step, TARGET)), of._given(of.state)
    (part,) = of._inputs(of.state)
    part["ids"][3, 2] = 11
    message = rf"index 11 at \[{place[0]}, {place[1]}\] is outside the embedding's table, which has 11 rows"
    for executor in (device, of._plan):
        with pytest.raises(InputError, match=message) as error:
            executor.run(given, [part])
        assert error.value.diagnostics[0].labels[0].span.line == 4


def test_a_model_looks_up_and_begins_with_zeros(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.tpu"
    model.write_text(
        "weights random(seed=0)\nmodel m(x: i32[4, 6] in [0, 8]) -> f32[4, 3]:\n    weight table: f32[9, 3]\n"
        "    h = zeros([4, 3])\n    return tanh(h + mean(embedding(x, table), axis=1))\n"
    )
    np.savez(tmp_path / "x.npz", x=np.arange(24).reshape(4, 6) % 9)
    assert run("run", model, "--target", "tpu_v2", "--input", tmp_path / "x.npz", "--check") == 0
    assert "check: all bits are those of the reference" in capsys.readouterr().out


# The instructions, their rules and their time.


BY_HAND = """
.target tpu_v2
.memory i input rows=5
.memory x input rows=5
.memory t scratch rows=4
.memory y output rows=5
.expression 0 "0.0"

    load hbm=i y=0 rows=10
    vector function=of_none expression=0 y=20 inner=4
    synchronize engine=memory wait=vector
    store a=20 hbm=t rows=4
    scatter_add a=5 indices=0 hbm=t height=4 rows=5
    gather indices=0 hbm=t height=4 y=30 rows=5
    store a=30 hbm=y rows=5
    halt
"""


def test_rows_are_added_one_after_the_other() -> None:
    """In float32 1 + 100,000,000 − 100,000,000 is 0, and in another order 1. An index outside is the nearest row's."""
    made = assemble(BY_HAND, "table.asm")
    assert verify(made) == ()
    machine = Interpreter(made)
    machine.begin({})
    hbm = machine.memories["hbm"]
    hbm[0:5, 0] = [2, 0, 2, 9, 2]
    hbm[5:10] = np.array([1, 5, 1e8, 7, -1e8], np.float32)[:, np.newaxis]
    for index in range(len(made.instructions)):
        machine.execute(index)
    assert hbm[14:19, 127].tolist() == [0, 5, 0, 7, 0]
    hbm[0:5, 0] = [np.nan, -3, np.inf, -np.inf, 3]
    for index in range(len(made.instructions)):
        machine.execute(index)
    assert hbm[10:14, 0].tolist() == [13, 0, 0, 1e8 - 1e8]


def test_text_binary_and_sentences() -> None:
    made = program()
    assert assemble(disassemble(made), "net.asm") == made
    assert decode(encode(made), "net.tpub") == made
    said = [str(V2.read(made.instructions[index])) for opcode in (Opcode.GATHER, Opcode.SCATTER_ADD) for index in places(made, opcode)]
    assert len(said) == 4
    assert said[0].startswith("brings rows of the table of 11 rows from row 3,105 of HBM on, by the indices in rows ")
    assert said[3].startswith("adds rows ")


def test_a_table_that_is_a_state_is_read_where_it_lies() -> None:
    made = lower(session(WORDS.replace("table * 2.0", "table")).step, TARGET).program
    home = next(buffer.start for buffer in made.host if buffer.name == "state:table")
    assert [int(made.instructions["host"][index]) for index in places(made, Opcode.GATHER)] == [home, home + 11]


def _over_its_indices(p: Program) -> Program:
    gather = places(p, Opcode.GATHER)[0]
    return edited(p, gather, dest=int(p.instructions["ub2"][gather]) + 1)


@each(
    [
        ("V0404", lambda p: without(p, places(p, Opcode.SCATTER_ADD)[0] - 1), "which nothing has written"),
        ("V0306", lambda p: edited(p, places(p, Opcode.GATHER)[0], index=0), "has a count of 0"),
        ("V0303", lambda p: edited(p, places(p, Opcode.GATHER)[0], index=10**6), "which are not all in host buffers of one kind"),
        ("V0703", _over_its_indices, "writes rows that it also reads, and not in the same order"),
        ("V0801", lambda p: without(p, places(p, Opcode.SCATTER_ADD)[0] - 2), "but doesn't wait for instruction"),
        ("V1004", lambda p: edited(p, places(p, Opcode.SCATTER_ADD)[0], host=first_row(p, "input")), "writes rows of input:ids"),
        ("V1006", lambda p: edited(p, places(p, Opcode.SCATTER_ADD)[0], host=0), "a state's"),
    ]
)
def test_a_program_that_breaks_a_rule_of_tables_is_refused(code: str, edit: Edit, message: str) -> None:
    assert verify(program()) == ()
    assert any(found.code == code and message in found.message for found in verify(edit(program())))


def test_a_lookup_takes_its_rows_and_no_others() -> None:
    """1,000 rows of 512 bytes at 300 GB/s are 1,195 cycles of 700 MHz, three times as many are 3,584, beside a latency of 700."""
    text = """
.target tpu_v2
.memory i input rows=1000
.memory t scratch rows={height}
.memory y output rows=1000

    load hbm=i y=0 rows=1000
    store a=0 hbm=t rows={height}
    scatter_add a=0 indices=0 hbm=t height={height} rows=1000
    gather indices=0 hbm=t height={height} y=1000 rows=1000
    store a=1000 hbm=y rows=1000
    halt
"""
    for height in (4, 900):
        made = assemble(text.format(height=height), "lookup.asm")
        assert verify(made) == ()
        times = time_program(made)
        assert (times.end - times.start)[[0, 2, 3]].tolist() == [1895, 4284, 1895]


def test_the_clock_lies_between_the_groups_bounds() -> None:
    """A table of 2,000 rows: a larger one passes through HBM once for each operation, of which groups know nothing."""
    text = (PROGRAMS / "10_imdb_lstm.tpu").read_text().replace("time = 250", "time = 5").replace("words = 15000", "words = 2000")
    step = session(text).step
    seconds, groups = time_program(lower(step, TARGET).program).makespan / TARGET.clock_hz, StepTime(step, TARGET)
    assert 0.95 * groups.overlapped_seconds <= seconds <= 1.1 * groups.seconds
