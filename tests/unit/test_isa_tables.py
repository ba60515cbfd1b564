"""One row says all about an instruction: a forgotten or a second row stops the import, and a new function is its row and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each, one_of
from tests.support.machine import Writer
from tests.support.worked import ROOT, apply_diff, package_copy, replace_once, run_on
from tpucc.isa.effects import effects
from tpucc.machine.instruction import FunctionSpec
from tpucc.machine.parts import NOWHERE
from tpucc.machines.v1 import FUNCTIONS, SPECS, V1, Flag, Function, Opcode, Place
from tpucc.machines.v1.functions import Operands
from tpucc.machines.v1.places import FLAGS

MAXIMUM = (ROOT / "docs" / "worked" / "instruction.diff").read_text()
FUNCTION_FILE, OPCODE_FILE, FLAG_FILE = (
    "tpucc/machines/v1/functions.py",
    "tpucc/machines/v1/instructions.py",
    "tpucc/machines/v1/places.py",
)
ADD_ROW = "        FunctionSpec(Function.ADD, "
SUBTRACT_ROW = "        FunctionSpec(Function.SUBTRACT, "
SECOND = '        FunctionSpec(Function.ADD, Place.UB, "something else", lambda x: x.a),\n'
NOP_ROW = '        Spec(Opcode.NOP, Engine.CONTROL, "Does nothing.", no_time, lambda _: "does nothing"),\n'
ELSEWHERE = """

from tpucc.machines.v1.places import Place
from tpucc.machine.instruction import FunctionSpec
from tpucc.machines.v1.functions import FUNCTIONS, Function
FUNCTIONS[Function.ADD] = FunctionSpec(Function.ADD, Place.UB, "something else", lambda x: x.a)
"""
REFUSED = {
    "a function without a row": (
        FUNCTION_FILE,
        "    WEIGHTED = 7\n",
        "    WEIGHTED = 7\n    LEAST = 99\n",
        "Function.LEAST has no row in FUNCTIONS",
    ),
    "an opcode without a row": (OPCODE_FILE, "    HALT = 14\n", "    HALT = 14\n    JUMP = 16\n", "Opcode.JUMP has no row in SPECS"),
    "a flag without a row": (FLAG_FILE, "    WIDE = 32\n", "    WIDE = 32\n    NARROW = 64\n", "Flag.NARROW has no row in FLAGS"),
    "a function with two meanings": (FUNCTION_FILE, ADD_ROW, SECOND + ADD_ROW, "Function.ADD has two rows in FUNCTIONS"),
    "an opcode with two meanings": (OPCODE_FILE, NOP_ROW, 2 * NOP_ROW, "Opcode.NOP has two rows in SPECS"),
    "a second meaning in the simulator": (
        "tpucc/sim/memories.py",
        "            assert_never(place.pattern)\n",
        "            assert_never(place.pattern)\n" + ELSEWHERE,
        "'mappingproxy' object does not support item assignment",
    ),
}


@pytest.mark.parametrize("what", one_of(2, REFUSED))
def test_the_import_refuses(what: str, tmp_path: Path) -> None:
    file, old, new, message = REFUSED[what]
    folder = package_copy(tmp_path)
    replace_once(folder / file, old, new)
    refused = run_on(folder, "import tpucc.sim.interpret")
    assert refused.returncode != 0
    assert f"TypeError: {message}" in refused.stderr


REFERENCE = f"""
import sys
sys.path.append({str(ROOT / "docs")!r})
"""
WORKED = """
import tpucc
from tpucc.isa.assembler import assemble, disassemble
from instructions_page import instructions_page
from tpucc.isa.verify import verify
from tpucc.runtime.check import compare_with_reference, random_inputs
from tpucc.runtime.judge import judge
from tpucc.sim.timing import time_program

HEAD = "weights random(seed=1)\\nmodel m(x: f32[3, 30], z: f32[3, 7]):\\n    weight w: f32[30, 7]\\n    weight v: f32[7, 5]\\n"
for body in ("maximum(x @ w, z) @ v", "relu(maximum(x @ w, z)), maximum(x @ w, z[:, 2:3])", "maximum(x @ w, 0.25) @ v"):
    for activations in ("", "activations i16\\n"):
        target = "tiny" if "@ v" in body and not activations else "tpu_v1"
        made = tpucc.compile_source(f"{activations}{HEAD}    return {body}\\n", target=target)
        program = made.runtime.program
        assert verify(program) == (), verify(program)
        assert not any(c.unequal for c in compare_with_reference(made.runtime, made.compilation.layers, random_inputs(made.runtime, 0)))
        assert judge(made.runtime, made.compilation).equal
        listing = disassemble(program)
        assert ("vector function=maximum" in listing) == ("0.25" not in body), listing
        assert assemble(listing, "maximum").instructions.tobytes() == program.instructions.tobytes()
        assert time_program(program).makespan > 0
assert "| `maximum` | the larger of two rows |" in instructions_page()
"""


@pytest.mark.soak
@pytest.mark.annex
def test_a_new_function_is_three_files_and_the_hardware(tmp_path: Path) -> None:
    """`maximum`, as the documentation adds it: an operator compiles to it, and it is verified, executed, timed and listed."""
    own = [part for part in re.split(r"^(?=--- )", MAXIMUM, flags=re.MULTILINE) if "+++ b/tpucc/" in part]
    assert len(own) == 3 + 1
    folder = package_copy(tmp_path)
    apply_diff(folder, "".join(own))
    done = run_on(folder, REFERENCE + WORKED)
    assert done.returncode == 0, done.stderr


def test_the_tables_cannot_be_changed() -> None:
    for table, member in ((FUNCTIONS, Function.ADD), (SPECS, Opcode.NOP), (FLAGS, Flag.WIDE)):
        with pytest.raises(TypeError):
            table[member] = table[member]  # type: ignore[index]


@each(
    [
        (Opcode.ACTIVATE, {"compute": None}, "writes rows without computing any"),
        (Opcode.SET_CONFIGURATION, {"compute": SPECS[Opcode.ACTIVATE].compute}, "writes rows without computing any"),
        (Opcode.READ_HOST_MEMORY, {"writes": Place.ACC}, "rows that no operand names: acc"),
        (Opcode.VECTOR, {"operands": SPECS[Opcode.ACTIVATE].operands}, "rows that no operand names: ub, ub2"),
    ]
)
def test_a_row_fits_its_machine(opcode: Opcode, changed: dict[str, object], message: str) -> None:
    specs = {**SPECS, opcode: replace(SPECS[opcode], **changed)}  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=message):
        replace(V1, instructions=tuple(specs.values()))


def test_what_a_meaning_computes_with_is_among_what_its_row_reads() -> None:
    """Each function of `vector` computes when it gets what its row says that it reads, and fails without any one of these."""
    everything = {
        Place.UB: ("a", np.full((2, 3), 4, np.int8)),
        Place.WINDOWS: ("a", np.full((2, 4, 3), 4, np.int8)),
        Place.UB2: ("b", np.full((2, 3), 5, np.int8)),
        Place.KERNEL: ("b", np.full((4, 3), 5, np.int8)),
        Place.BLOCK: ("block", _block()),
    }
    for row in FUNCTIONS.values():
        given = dict(everything[place] for place in row.reads)
        assert _computes(row, given), row
        for name in given:
            assert not _computes(row, {key: value for key, value in given.items() if key != name}), f"{row} needs no {name}"


def _computes(row: FunctionSpec, given: dict[str, Any]) -> bool:
    """Whether the function makes rows of what it is given. What isn't given is empty."""
    try:
        return row.compute(Operands(Flag(0), **given)).shape == (2, 3)
    except (IndexError, ValueError):
        return False


def _block() -> np.void:
    writer = Writer()
    writer.block(table=np.arange(256) - 128)
    block: np.void = writer.blocks[0][()]
    return block


@each(Opcode)
def test_effects_are_those_of_the_row(opcode: Opcode) -> None:
    """For every function and flag of every instruction: the columns of `effects` are the row's places, one by one."""
    spec = SPECS[opcode]
    for function in spec.functions or (Function.COPY,):
        for flags in (Flag(0), *spec.flags):
            fields = {operand.field: 1 for operand in spec.operands_for(function) if operand.field != "function"}
            touched = effects(V1.record(opcode, int(flags), **fields, **({"function": int(function)} if spec.functions else {})).reshape(1))
            reads = spec.reads_for(function, flags)
            columns = {
                Place.UB | Place.WINDOWS: (touched.source.used, NOWHERE),
                Place.UB2 | Place.KERNEL: (touched.source2.used, NOWHERE),
                Place.KERNEL: (touched.weighs, NOWHERE),
                Place.DEST: (np.zeros(1, bool), touched.target.used),
                Place.ACC: (touched.sums.reads, touched.sums.writes),
                Place.HOST: (touched.host_reads, touched.host_writes),
                Place.FIFO: (touched.pops, touched.pushes),
                Place.TILE: (touched.multiplies, NOWHERE),
                Place.BLOCK: (touched.configured, touched.configures),
                Place.PORTS: (touched.interrupts, touched.interrupts),
            }
            for place, (is_read, is_written) in columns.items():
                assert bool(is_read) is bool(reads & place), (place, "read")
                assert bool(is_written) is bool(spec.writes & place), (place, "written")
