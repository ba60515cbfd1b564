"""Listings as a student edits them: a line more or less breaks the rules that it really breaks, and messages point at its neighbours."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import each
from tpucc.diagnostics import ProgramError
from tpucc.isa.assembler import assemble, disassemble, read_listing
from tpucc.isa.program import Program
from tpucc.isa.verify import check, verify
from tpucc.lowering.tiletext import print_tiles, read_tiles
from tpucc.lowering.verify import verify_tiles
from tpucc.runtime.runtime import Runtime

ROOT = Path(__file__).parents[2]
SOURCES = {"chain": ROOT / "programs" / "02_iris.tpu", "vectors in place": ROOT / "tests" / "programs" / "broadcasts.tpu"}


@cache
def compiled(name: str) -> tpucc.Executable:
    return tpucc.compile(SOURCES[name])


@cache
def listing(name: str) -> tuple[str, ...]:
    return tuple(disassemble(program(name)).split("\n"))


def program(name: str) -> Program:
    made: Program = compiled(name).program.value
    return made


def code_of(name: str, mnemonic: str = "") -> list[int]:
    """The lines of instructions."""
    return [number for number, line in enumerate(listing(name)) if line.startswith(f"    {mnemonic}")]


def broken(lines: list[str]) -> set[str]:
    return {violation.code for violation in verify(assemble("\n".join(lines), "edited.asm"))}


@pytest.mark.parametrize("name", SOURCES)
def test_a_deleted_wait_is_a_hazard_and_nothing_else(name: str) -> None:
    waits = code_of(name, "synchronize")
    assert waits
    for number in waits:
        found = broken([line for index, line in enumerate(listing(name)) if index != number])
        assert found
        assert found <= {"V0801", "V0802", "V0803"}


@pytest.mark.parametrize("name", SOURCES)
def test_an_instruction_that_does_nothing_may_stand_anywhere(name: str) -> None:
    code = code_of(name)  # it may not follow halt
    for number in {*code, *(line + 1 for line in code[:-1])}:
        assert not broken([*listing(name)[:number], ("nop", "debug_tag tag=7")[number % 2], *listing(name)[number:]])


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(
    ("mnemonic", "rules"),
    [
        ("read_host_memory", {"V0401"}),
        ("vector", {"V0401"}),
        ("write_host_memory", {"V1002"}),
        ("halt", {"V1001"}),
        ("activate", {"V0401", "V0503"}),
    ],
)
def test_a_deleted_instruction_is_missed_where_its_result_is_used(name: str, mnemonic: str, rules: set[str]) -> None:
    for number in code_of(name, mnemonic):
        assert broken([line for index, line in enumerate(listing(name)) if index != number]) == rules


def test_a_message_shows_the_line_of_the_listing_and_of_the_source() -> None:
    number = code_of("chain", "synchronize")[0]
    text = "\n".join(line for index, line in enumerate(listing("chain")) if index != number)
    made, places = read_listing(text, "iris.asm")
    with pytest.raises(ProgramError) as error:
        check(made, places)
    shown = error.value.render().split("\n")
    assert shown[0].startswith(f"iris.asm:{number + 1}:5: error V0801: instruction 3 `matrix_multiply")
    assert shown[1] == f"  {number + 1} | {text.split(chr(10))[number]}"
    assert shown[2].strip(" |") == "^" * len(text.split("\n")[number].split(" ; ")[0].strip())
    assert any(line.startswith(f"iris.asm:{number}:5: note: instruction 2") for line in shown)
    source = next(index for index, line in enumerate(shown) if line.endswith("note: compiled from here"))
    assert shown[source].startswith("02_iris.tpu:12:17")
    assert "sigmoid(dense(x, 256" in shown[source + 1]


def test_lines_have_their_numbers_and_nobody_reads_them() -> None:
    text = "\n".join(listing("chain"))
    code = [line for line in listing("chain") if line.startswith("    ")]
    assert [int(line.rsplit(" ; ", 1)[1]) for line in code] == list(range(len(code)))
    assert assemble(text.replace(" ; 3\n", " ; 99\n").replace(" ; 4\n", "\n"), "x.asm") == program("chain")


def test_no_directive_of_a_compiled_program_has_the_number_of_an_instruction() -> None:
    for name in SOURCES:
        assert program(name).residents
        assert not [line for line in listing(name) if line.startswith(".resident") and ("first=" in line or "last=" in line)]


def test_stays_that_places_cannot_say_have_numbers() -> None:
    made = program("chain")
    first, second, third = made.residents
    odd = [
        (third, second, first),
        (replace(first, last=first.last + 1), second, third),
        (replace(first, first=first.first - 1), second, third),
        (replace(first, first=10**6, last=10**6), second, third),
        (first, replace(first, rows=1, last=first.last - 1), second, third),
        (first, replace(second, name=first.name), third),
    ]
    for stays in odd:
        changed = replace(made, residents=stays)
        assert assemble(disassemble(changed), "x.asm") == changed


@each(
    [
        (".end h", "ends here, but no .resident"),
        (".resident h rows=4", "needs start="),
        (".resident h start=0 rows=4 fist=1", "doesn't take"),
    ]
)
def test_lines_of_stays_that_cannot_be_read(added: str, message: str) -> None:
    with pytest.raises(ProgramError) as error:
        assemble(f".target tiny\nnop\n{added}\nhalt\n", "x.asm")
    assert error.value.diagnostics[0].code == "E0716"
    assert message in error.value.diagnostics[0].message
    assert error.value.diagnostics[0].span.line == 3


def test_a_fault_of_a_tile_program_is_shown_at_its_line() -> None:
    lines = print_tiles(compiled("chain").tiles.value).split("\n")
    number = next(index for index, line in enumerate(lines) if line.startswith("    read_host_memory"))
    tiles, places = read_tiles("\n".join([*lines[:number], *lines[number + 1 :]]), "iris.tile")
    model = compiled("chain").compilation.source
    with pytest.raises(ProgramError) as error:
        verify_tiles(tiles, places, model)
    shown = error.value.render()
    assert shown.startswith(f"iris.tile:{number + 1}:5: error E0754: tile instruction 0 `matrix_multiply")
    assert "02_iris.tpu:12:17: note: compiled from here" in shown


def test_a_bar_after_an_instruction_is_told() -> None:
    with pytest.raises(ProgramError, match=r"E0715.*stands after no directive"):
        assemble("nop\n| 1 2\n", "x.asm")


def test_a_tile_program_has_no_stays() -> None:
    text = print_tiles(compiled("chain").tiles.value)
    with pytest.raises(ProgramError, match="E0715"):
        read_tiles(text + ".resident h start=0 rows=4\n", "x.tile")


def test_a_layer_has_no_offset() -> None:
    text = ".target tiny\n.layer fc1 fc\n.for fc1{}\nhalt\n"
    assert len(assemble(text.format(""), "x.asm").instructions) == 1
    with pytest.raises(ProgramError, match="E0716"):
        assemble(text.format("+7"), "x.asm")


def test_a_typed_program_is_timed_and_not_run() -> None:
    runtime = Runtime(assemble(".target tiny\n    halt\n", "x.asm"))
    assert runtime.timeline.makespan == 0
    with pytest.raises(ProgramError, match="E0708: x has no part for the host"):
        runtime.run({})
