"""The one text codec: lines that follow from a dataclass, and the errors of a text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.diagnostics import LineError, ProgramError, Source, Span
from tpucc.ir.codec import MOST_ERRORS, WITHOUT_DATA, Errors, line_error
from tpucc.isa.listing.data import BlockText
from tpucc.isa.listing.lines import Arguments, read_lines
from tpucc.isa.listing.schema import QUOTED, Entry, Fields
from tpucc.machine.parts import Register
from tpucc.machines.v1 import V1


@dataclass(frozen=True)
class Part:
    """A part of another value."""

    note: str = ""


@dataclass(frozen=True)
class Kept:
    """A field of each type that has a codec of its own."""

    name: str
    rows: int
    share: float
    sizes: tuple[int, int] = (0, 0)
    blocks: tuple[int, ...] = ()
    places: tuple[Span, ...] = ()
    part: Part = Part()
    last: int = 7


ROW = Fields(
    Kept,
    Entry("name", what="a name"),
    "rows",
    "share",
    "sizes",
    "blocks",
    Entry("places", "at"),
    Entry("part.note", "note", codec=QUOTED),
    Entry("last", default=0),
)
VALUES = {
    "with defaults": (Kept("h", 3, 0.1), ".kept h rows=3 share=0.1 last=7"),
    "with everything": (
        Kept("a name", 0, 1e-9, (3, 4), (1, 2), (Span(3, 5, 3, 12), Span(4, 1, 5, 9)), Part('say "x"'), 0),
        '.kept "a name" rows=0 share=1e-09 sizes=3x4 blocks=[1 2] at=[3:5-12 4:1-5:9] note="say \\"x\\"" last=0',
    ),
}


def arguments(line: str) -> Arguments:
    (directive,) = read_lines(line, Errors()).directives
    return Arguments(directive)


@each(list(VALUES))
def test_a_line_follows_from_the_fields(case: str) -> None:
    value, line = VALUES[case]
    assert ROW.line("kept", value) == line
    *found, note, last = ROW.read(arguments(line))
    assert Kept(*found, Part(note), last) == value


def test_what_may_be_left_out_has_its_default() -> None:
    assert ROW.read(arguments(".kept h rows=1 share=2")) == ["h", 1, 2.0, (0, 0), (), (), "", 0]


@each(
    [
        ("h share=1", "E0716", ".kept needs rows=", 1),
        ("rows=1 share=1", "E0716", ".kept needs a name", 1),
        ("h rows=x share=1", "E0713", "expected a number for rows, found x", 14),
        ("h rows=1 share=inf", "E0713", "expected a number for share, found inf", 22),
        ("h rows=1 share=1 sizes=3", "E0713", "expected sizes such as 8x4, found 3", 30),
        ("h rows=1 share=1 at=[3]", "E0713", "expected places such as 3:5-12 or 3:5-4:2, found 3", 27),
        ("h rows=1 share=1 rows=2", "E0714", "rows is given twice", 24),
        ("h rows=1 share=1 raws=2", "E0716", ".kept doesn't take raws=2", 24),
        (f"h rows={2**63} share=1", "E0713", "rows must be from 0 to 9,223,372,036,854,775,807", 14),
    ]
)
def test_a_wrong_word_is_named_at_its_place(words: str, code: str, message: str, column: int) -> None:
    with pytest.raises(LineError) as caught:
        ROW.read(arguments(f".kept {words}"))
    found = caught.value.diagnostic
    assert (found.code, found.message) == (code, message)
    assert found.span is not None
    assert found.span.column == column


def test_a_block_is_written_as_the_register_of_its_machine_says() -> None:
    kind = np.dtype([("shift", "<i4"), ("gain", "<f4", (20,)), ("limit", "<i4")])
    register = Register(V1.register.place, "block", lambda lanes: kind, {"limit": 9}) if V1.register else None
    assert register is not None
    text, block = BlockText(V1, register, 20), np.zeros(1, kind)
    block["limit"], block["shift"], block["gain"][0, 3] = 9, -2, 0.5
    lines = list(text.lines(block[0], with_data=True))
    assert lines[0] == ".block shift=-2"
    assert [line[:7] for line in lines[1:]] == ["| gain "]
    assert text.read(arguments("\n".join(lines)), 0, None).tobytes() == block.tobytes()


def _fail(code: str, line: int) -> None:
    raise line_error(code, "wrong", Span(line, 1, line, 2))


def test_errors_stand_in_the_order_of_the_text_and_are_not_too_many() -> None:
    errors = Errors()
    assert errors.attempt(lambda: None)
    assert not any(errors.attempt(_fail, "E0713", line) for line in range(MOST_ERRORS, 0, -1))
    assert errors.are_enough
    errors.attempt(_fail, "E0713", 99)
    with pytest.raises(ProgramError) as caught:
        errors.require_none(Source("a.asm", ""))
    assert [found.span.line for found in caught.value.diagnostics if found.span] == [*range(1, MOST_ERRORS + 1)]


def test_only_the_first_constant_without_its_model_is_reported() -> None:
    errors = Errors()
    for line in (4, 2, 3):
        errors.attempt(_fail, WITHOUT_DATA, line)
    errors.attempt(_fail, "E0713", 1)
    with pytest.raises(ProgramError) as caught:
        errors.require_none(Source("a.asm", ""))
    assert [(found.code, found.span and found.span.line) for found in caught.value.diagnostics] == [("E0713", 1), (WITHOUT_DATA, 2)]
