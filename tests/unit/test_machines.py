"""A machine is a value: another one than v1 is assembled, verified, executed, timed and stored by what knows v1 only as its rows."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.diagnostics import ProgramError
from tpucc.ir.dtypes import I8
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.isa.effects import effects
from tpucc.isa.verify import verify
from tpucc.machine.control import halt, synchronize
from tpucc.machine.instruction import OperandSpec, Spec
from tpucc.machine.machine import Machine
from tpucc.machine.parts import AccessPattern, Account, Contents, Encoding, Memory, Queue, RowPlace, Unit, no_time, one_a_row, one_cycle
from tpucc.machines.v1 import V1
from tpucc.schedule.listing import Listing
from tpucc.schedule.pipeline import prefetch_entries, with_end
from tpucc.schedule.synchronise import Wait, synchronise, waits_for, with_waits
from tpucc.sim.interpret import Interpreter
from tpucc.sim.timing import time_program

ROOT = Path(__file__).resolve().parents[2]


def toy() -> Machine:
    """The machine of the first code block of docs/machine-as-a-value.md."""
    page = (ROOT / "docs" / "machine-as-a-value.md").read_text("utf-8")
    found = re.search(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    assert len([line for line in found[1].splitlines() if line]) <= 40
    names: dict[str, Any] = {}
    exec(found[1], names)
    machine: Machine = names["TOY"]
    return machine


TOY = toy()
PAIR = """
.target tiny
.input x 2x4 scale=1.0
.output y 1x4 scale=1.0

    add a=x.0 b=x.0+1 to=y.0
    halt
"""


def test_the_machine_of_the_page() -> None:
    program = assemble(PAIR, "pair.asm", machine=TOY)
    assert verify(program) == ()
    assert assemble(disassemble(program), "pair.asm", machine=TOY) == program
    assert decode(encode(program), "pair.tpub", TOY) == program
    x = np.array([[1, 2, 3, 4], [10, 20, 30, 127]], np.int8)
    assert Interpreter(program).run({"x": x})["y"].tolist() == [[11, 22, 33, -125]]
    times = time_program(program)
    assert (times.start.tolist(), times.end.tolist(), times.makespan) == ([0, 1], [1, 1], 1)
    with pytest.raises(ProgramError, match="the program is for the machine toy, and not for v1"):
        decode(encode(program), "pair.tpub")
    with pytest.raises(ProgramError, match="no instruction is named matrix_multiply"):
        assemble(PAIR.replace("add", "matrix_multiply"), "pair.asm", machine=TOY)


@each(
    [
        ("a=x.0 ", "a=y.0 ", "V0404", "reads row 0 of y.0, which nothing has written"),
        ("    halt\n", "", "V1001", "the program doesn't end in halt"),
        ("to=y.0", "to=x.0", "V1004", "writes rows of x.0, which is the input of the program"),
        (
            "to=y.0",
            "to=y.0 rows=4",
            "V0303",
            "moves the store's rows 0 to 3, which are not all in host buffers of one kind: x.0 has 2 rows",
        ),
        ("to=y.0", "to=y.0 rows=0", "V0306", "has a count of 0"),
    ]
)
def test_wrong_programs_of_the_page_s_machine(old: str, new: str, code: str, message: str) -> None:
    found = verify(assemble(PAIR.replace(old, new), "pair.asm", machine=TOY))
    assert [message] == [each.message[-len(message) :] for each in found if each.code == code]


class Engine(IntEnum):
    MOVER, ADDER, CONTROL = range(3)


class Opcode(IntEnum):
    BRING, TAKE, ADD, AWAIT, HALT, PUSH = (7, 1, 40, 3, 255, 9)


class Place(IntFlag):
    FROM, TO, CELLS, A, B, SUM, ASKED, HELD, FILLED = (1 << bit for bit in range(9))


ROW = OperandSpec("inner", "rows", "count", "how many rows", 1)
STORE, CELL = OperandSpec("host", "store", "store", "row"), OperandSpec("acc", "cell", "cells", "row")
SPECS = (
    Spec(
        Opcode.BRING, Engine.MOVER, "", one_a_row, lambda x: "brings", (STORE, OperandSpec("dest", "cell", "cells", "row"), ROW),
        reads=Place.FROM, writes=Place.CELLS, compute=lambda x: x["rows"],
    ),
    Spec(
        Opcode.TAKE, Engine.MOVER, "", one_a_row, lambda x: "takes", (STORE, OperandSpec("ub", "cell", "cells", "row"), ROW),
        reads=Place.A, writes=Place.TO, compute=lambda x: x["a"],
    ),
    Spec(
        Opcode.ADD, Engine.ADDER, "", one_a_row, lambda x: "adds",
        (OperandSpec("ub", "a", "cells", "row"), OperandSpec("ub2", "b", "cells", "row"), OperandSpec("dest", "to", "cells", "row"), ROW),
        reads=Place.A | Place.B, writes=Place.SUM, compute=lambda x: x["a"] + x["b"],
    ),
    Spec(
        Opcode.AWAIT, Engine.CONTROL, "", no_time, lambda x: "waits",
        (OperandSpec("index", "unit", "engine", "who"), OperandSpec("engines", "for", "engines", "whom")),
        waits=lambda index, engines: ((index, engines),),
    ),
    Spec(Opcode.HALT, Engine.CONTROL, "", no_time, lambda x: "ends"),
)  # fmt: skip
TWO = Machine(
    name="two",
    memories=(
        Memory("cells", "cells", "cell", Contents.VALUES, I8.numpy, lambda target: 4),
        Memory("store", "store", "store row", Contents.BUFFERS, I8.numpy),
    ),
    rows=(
        RowPlace(Place.FROM, "store", "host", AccessPattern.DENSE, "rows"),
        RowPlace(Place.TO, "store", "host", AccessPattern.DENSE),
        RowPlace(Place.A, "cells", "ub", operand="a"),
        RowPlace(Place.B, "cells", "ub2", operand="b"),
        RowPlace(Place.SUM, "cells", "dest"),
        RowPlace(Place.CELLS, "cells", "dest"),
    ),
    units=(Unit(Engine.MOVER, "the mover"), Unit(Engine.ADDER, "the adder", drain=lambda target: 3)),
    instructions=SPECS,
    formats=(Encoding(I8, 0),),
    account=Account(Engine.ADDER, Engine.ADDER, Engine.MOVER),
    halt=Opcode.HALT,
    operands=lambda flags, **read: read,
)
SUM = """
.target tiny
.input x 2x4 scale=1.0
.output y 1x4 scale=1.0

    bring store=x.0 cell=0 rows=2
    await unit=adder for=mover
    add a=0 b=1 to=3
    await unit=mover for=adder
    take store=y.0 cell=3
    halt
"""


def test_two_units_that_wait_for_each_other() -> None:
    program = assemble(SUM, "sum.asm", machine=TWO)
    assert verify(program) == ()
    assert assemble(disassemble(program), "sum.asm", machine=TWO) == program
    assert Interpreter(program).run({"x": np.ones((2, 4), np.int8)})["y"].tolist() == [[2, 2, 2, 2]]
    times = time_program(program)
    moved = times.start[[0, 2, 4]].tolist(), times.end[[0, 2, 4]].tolist()
    assert moved == ([0, 2, 6], [2, 3, 7])  # the sum is there three cycles after the adder's end
    assert times.waits[:, 1].tolist() == [2]


def test_the_scheduler_finds_the_waits_of_two_units() -> None:
    """Of the listing without its waits: those that it has."""
    program = assemble(re.sub("    await.*\n", "", SUM), "sum.asm", machine=TWO)
    waits = waits_for(effects(program.instructions, TWO), TWO)
    assert waits == [Wait(1, Engine.ADDER, (Engine.MOVER,)), Wait(2, Engine.MOVER, (Engine.ADDER,))]


def test_the_scheduler_writes_the_waits_and_the_end_of_two_units() -> None:
    bare = assemble(re.sub("    (await|halt).*\n", "", SUM), "sum.asm", machine=TWO)
    listing = Listing(bare.instructions, np.zeros(3, np.int64), np.arange(3), (), TWO)
    found = with_end(with_waits(listing, synchronise(listing)))
    assert np.array_equal(found.records, assemble(SUM, "sum.asm", machine=TWO).instructions)


def test_a_memory_of_values_says_where_its_rows_spill_to() -> None:
    cells, store = TWO.memories
    spilling = replace(TWO, memories=(replace(cells, spills_to="store"), store))
    assert spilling.transfers == (SPECS[0], SPECS[1])
    assert [spec.mnemonic for spec in V1.transfers] == ["read_host_memory", "write_host_memory"]
    with pytest.raises(TypeError, match="the memory cells of two spills to no other"):
        _ = TWO.transfers
    with pytest.raises(TypeError, match="toy has no memory of values"):
        _ = TOY.values


@each(
    [
        ("    await unit=adder for=mover\n", "", "V0801", "reads cell 0, but doesn't wait for instruction 0"),
        ("    await unit=mover for=adder\n", "", "V0801", "reads cell 3, but doesn't wait for instruction 2"),
        ("a=0", "a=2", "V0401", "reads row 2 of the cells, which nothing has written"),
        ("to=3", "to=4", "V0301", "writes up to row 4; the cells has 4 rows"),
        ("for=mover", "for=5", "E0713", ""),
    ]
)
def test_wrong_programs_of_two_units(old: str, new: str, code: str, message: str) -> None:
    try:
        found = [(each.code, each.message) for each in verify(assemble(SUM.replace(old, new, 1), "sum.asm", machine=TWO))]
    except ProgramError as error:
        found = [(each.code, each.message) for each in error.diagnostics]
    assert any(each[0] == code and message in each[1] for each in found), found


ENTRY = OperandSpec("index", "entry", "entry", "which")
PUSH = Spec(Opcode.PUSH, Engine.MOVER, "", one_cycle, lambda x: "asks", (ENTRY,), writes=Place.ASKED)


def test_a_queue_is_known_to_clock_and_verifier() -> None:
    """A machine whose adder takes an entry with each sum: the queue has one place, and its shadow takes five cycles."""
    taking = replace(SPECS[2], reads=Place.A | Place.B | Place.ASKED | Place.HELD, compute=lambda x: x["a"] + x["b"] + x["entry"][0, 0])
    queue = Queue(Place.ASKED, Place.HELD, Place.FILLED, "entry", lambda target: 1, lambda target: 5)
    machine = replace(TWO, instructions=(*SPECS[:2], taking, *SPECS[3:], PUSH), queue=queue)
    listing = SUM.replace("    bring", ".tile\n| 5\n    push entry=0\n    bring")
    program = assemble(listing, "sum.asm", machine=machine)
    assert verify(program) == ()
    assert Interpreter(program).run({"x": np.ones((2, 4), np.int8)})["y"].tolist() == [[7, 7, 7, 7]]
    times = time_program(program)
    assert (times.tiles.arrived.tolist(), times.tiles.shifted.tolist(), times.tiles.taken.tolist()) == ([1], [6], [6])
    bare = assemble(re.sub("    (await|push|halt).*\n", "", listing), "sum.asm", machine=machine)
    placed = Listing(bare.instructions, np.zeros(3, np.int64), np.arange(3), (), machine)
    assert [each.opcode for each in map(machine.read, prefetch_entries(placed, bare.target).records)] == [9, 7, 40, 1]
    starved = verify(assemble(SUM, "sum.asm", machine=machine))
    assert [each.message.partition("` ")[2] for each in starved] == ["switches to the next tile, and no push has asked for one"]
    full = assemble(listing.replace("    push entry=0\n", 3 * "    push entry=0\n"), "sum.asm", machine=machine)
    assert "V0602" in {each.code for each in verify(full)}


@each(
    [
        ({"memories": TWO.memories[:1]}, "two has no memory store, in which the place FROM lies"),
        ({"memories": (replace(TWO.memories[0], spills_to="attic"), TWO.memories[1])}, "cells of two spills to a memory that there isn't"),
        ({"units": TWO.units[1:]}, "the units of two aren't numbered 0, 1, …"),
        ({"units": TWO.units[:1]}, "await of two runs on no unit"),
        ({"rows": TWO.rows[:-1]}, "bring of two touches CELLS, which is in no memory"),
        ({"rows": (*TWO.rows[:-1], RowPlace(Place.CELLS, "cells", "there"))}, "begins at there, which is no field of an instruction"),
        ({"instructions": (*SPECS, SPECS[0])}, "two instructions of two have one opcode"),
        ({"instructions": (*SPECS, PUSH)}, "push of two touches ASKED, which is in no memory"),
        ({"instructions": (*SPECS[1:], replace(SPECS[0], operands=(STORE, ROW)))}, "rows that no operand names: dest"),
        ({"instructions": (*SPECS[1:], replace(SPECS[0], compute=None))}, "writes rows without computing any"),
    ]
)
def test_parts_that_do_not_fit_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        replace(TWO, **parts)


def test_a_memory_says_its_rows_unless_the_program_does() -> None:
    with pytest.raises(TypeError, match="must say how many rows it has"):
        Memory("cells", "cells", "cell", Contents.VALUES, I8.numpy)


def test_a_machine_goes_to_another_process_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(V1)) is V1
    with pytest.raises(TypeError, match="toy is no machine of tpucc's"):
        pickle.dumps(TOY)


def test_machines_do_not_mix() -> None:
    """The effects of the same bytes are those of the machine that is asked."""
    program = assemble(SUM, "sum.asm", machine=TWO)
    other = effects(assemble(PAIR, "pair.asm", machine=TOY).instructions, TOY)
    assert effects(program.instructions, TWO).engine.tolist() == [0, 2, 1, 2, 0, 2]
    assert other.engine.tolist() == [0, 1]
    assert V1.control == 4


DOUBLED = """
.target tiny
.input x 2x4 scale=1.0
.output y 2x4 scale=1.0

    add a=x.0 b=x.0+1 to=y.0
    double a=y.0 b=y.0 to=y.0+1
    halt
"""


def doubling() -> Machine:
    """The toy with a second unit, which adds as the first one does, and waits of one for the other."""

    class Part(IntEnum):
        ADDER, DOUBLER, CONTROL = range(3)

    class Code(IntEnum):
        ADD, DOUBLE, HALT, SYNCHRONIZE = range(4)

    add = TOY.instructions[0]
    instructions = (
        replace(add, opcode=Code.ADD, engine=Part.ADDER),
        replace(add, opcode=Code.DOUBLE, engine=Part.DOUBLER),
        halt(Code.HALT, Part.CONTROL),
        synchronize(Code.SYNCHRONIZE, Part.CONTROL),
    )
    units = (Unit(Part.ADDER, "the adder"), Unit(Part.DOUBLER, "the doubler"))
    account = Account(Part.ADDER, Part.DOUBLER, Part.DOUBLER)
    return replace(TOY, units=units, instructions=instructions, account=account, halt=Code.HALT)


def test_units_that_share_a_memory_of_buffers_wait_for_each_other() -> None:
    """The rows that are left at the end of a program are no access of a unit."""
    machine = doubling()
    found = verify(assemble(DOUBLED, "two.asm", machine=machine))
    assert {each.code for each in found} == {"V0801"}
    waiting = DOUBLED.replace("    double", "    synchronize engine=doubler wait=adder\n    double")
    program = assemble(waiting, "two.asm", machine=machine)
    assert verify(program) == ()
    x = np.array([[1, 2, 3, 4], [10, 20, 30, 40]], np.int8)
    assert Interpreter(program).run({"x": x})["y"].tolist() == [[11, 22, 33, 44], [22, 44, 66, 88]]
