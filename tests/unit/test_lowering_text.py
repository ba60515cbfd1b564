"""The text form of tile programs: printed and read back equal; errors at their places."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.device_graphs import TINY, V1, Device, chain, lstm
from tpucc.diagnostics import ProgramError
from tpucc.ir import Graph
from tpucc.lowering.lower import lower
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.tiletext import print_tiles, read_tiles
from tpucc.lowering.verify import verify_tiles
from tpucc.schedule import schedule


def broadcast() -> Graph:
    device = Device()
    a = device.input("a", 2, 1, 3, 1, 5)
    return device.build(device.vector("y", "subtract", a, device.constant("b", 1, 2, 1, 3, 1), table=True))


PROGRAMS = {
    "hello": lower(chain(8, 9, 7), TINY),
    "split": lower(chain(5, 9, 7, 3), TINY, parts=3),
    "lstm": lower(lstm(2, 3, 5, 6), TINY),
    "walks": lower(broadcast(), V1),
    "large": lower(chain(5000, 300, 10), V1),
    "empty": lower(Graph("nothing", (), ()), V1),
}


def assert_equal(found: TileProgram, expected: TileProgram) -> None:
    for name in ("instructions", "tiles", "blocks", "constants"):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert (mine.dtype, mine.shape, mine.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes()), name
    for name in ("name", "source", "target", "buffers", "groups", "layers", "host", "inputs", "outputs", "notes"):
        assert getattr(found, name) == getattr(expected, name), name


@each(list(PROGRAMS))
def test_parse_of_print_is_the_program(name: str) -> None:
    text = print_tiles(PROGRAMS[name])
    parsed, _ = read_tiles(text, "x.tile")
    assert_equal(parsed, PROGRAMS[name])
    assert print_tiles(parsed) == text
    verify_tiles(parsed)
    assert schedule(parsed) == schedule(PROGRAMS[name])


def test_lines_are_what_a_person_would_write() -> None:
    lines = [line.split(" ; ")[0].strip() for line in print_tiles(PROGRAMS["hello"]).splitlines()]
    assert ".buffer x.1 rows=8 layer=0 home=input:x.1" in lines
    assert "read_host_memory host=input:x.1 ub=x.1 rows=8" in lines
    assert "matrix_multiply ub=x.1 acc=g0 rows=8 tile=2, switch, accumulate" in lines
    assert "activate acc=g1 ub=h1.1 inner=8" in lines


HEAD = """.target tiny
.input x 8x4
.output y 8x4
.buffer x.0 rows=8 home=x.0
.buffer y.0 rows=8
.groups [8]
.tile
| 1 0 0 0
.block multiplier=0.5
"""
CODE = """
    read_host_memory host=x.0 ub=x.0 rows=8
    matrix_multiply ub=x.0 acc=g0 rows=8 tile=0, switch
    set_configuration block=0
    activate acc=g0 ub=y.0 inner=8
    write_host_memory ub=y.0 host=y.0 rows=8
"""


def test_a_program_written_by_hand() -> None:
    with_layer = HEAD.replace(".groups", ".layer main fc\n.groups")
    tiles, _ = read_tiles(with_layer + CODE, "hand.tile")
    verify_tiles(tiles)
    program = schedule(tiles)
    assert program.name == "hand"
    assert program.tiles.tolist() == [[[1, 0, 0, 0], [0] * 4, [0] * 4, [0] * 4]]


@each(
    [
        ("ub=x.0 acc=g0", "ub=q.0 acc=g0", "E0713", "no buffer is named q.0"),
        ("ub=x.0 acc=g0", "ub=0 acc=g0", "E0713", "expected a row of a buffer"),
        ("ub=x.0 acc=g0", "ub=x.0+8 acc=g0", "E0713", "past the end"),
        ("acc=g0 rows", "acc=g1 rows", "E0713", "no accumulator group"),
        ("acc=g0 rows", "acc=0 rows", "E0713", "expected a row of a group"),
        ("acc=g0 rows", "acc=g00 rows", "E0713", "no accumulator group"),
        (" tile=0, switch", ", switch", "E0712", "needs tile="),
        ("tile=0, switch", "tile=0", "E0712", "has no tile"),
        ("host=x.0 ub", "host=z ub", "E0713", "no host buffer is named z"),
        (".groups [8]", ".groups [a]", "E0713", "expected numbers for this, found [a]"),
        (".groups [8]", f".groups [{2**63}]", "E0713", "numbers are at most 9,223,372,036,854,775,807"),
        (".groups [8]", ".groups", "E0716", "needs rows in brackets"),
        ("home=x.0", "home=w.0", "E0716", "no host buffer is named w.0"),
        (".buffer y.0 rows=8", ".buffer y.0", "E0716", "needs rows="),
        (".buffer y.0 rows=8", ".buffer x.0 rows=8", "E0718", "two buffers are named x.0"),
        (".tile\n", ".tyle\n", "E0715", "no directive is named"),
        ("activate", "activite", "E0710", "no instruction is named"),
        ("    activate", ".for nowhere\n    activate", "E0716", "no layer is nowhere"),
    ]
)
def test_errors_name_code_and_place(old: str, new: str, code: str, message: str) -> None:
    text = HEAD + CODE
    assert old in text
    with pytest.raises(ProgramError) as error:
        read_tiles(text.replace(old, new, 1), "bad.tile")
    first = error.value.diagnostics[0]
    assert (first.code, message in first.message) == (code, True), first.message
    assert first.span is not None
    changed = text.replace(old, new, 1).split("\n")[first.span.line - 1]
    assert changed not in text.split("\n"), "the error is on the changed line"


@pytest.mark.parametrize("words", ["a" * 10**6, "activate acc=" + "x" * 10**6])
def test_no_message_has_megabytes_of_a_text(words: str) -> None:
    with pytest.raises(ProgramError) as error:
        read_tiles(HEAD + CODE.replace("activate acc=g0", words), "bad.tile")
    assert len(error.value.render()) < 2000


def test_several_errors_are_reported_at_once() -> None:
    with pytest.raises(ProgramError) as error:
        read_tiles(HEAD + CODE.replace("ub=y.0", "ub=nowhere"), "bad.tile")
    assert len(error.value.diagnostics) == 2


def test_numbers_of_large_programs_survive() -> None:
    tiles = PROGRAMS["large"]
    assert np.array_equal(read_tiles(print_tiles(tiles), "x")[0].instructions["acc"], tiles.instructions["acc"])
