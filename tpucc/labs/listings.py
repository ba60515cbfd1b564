"""Listings: of a few instructions, as labs draw them, and the programs that they make with waits; and what a student's may have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tpucc.diagnostics import Origin, printable
from tpucc.ir.codec import Errors
from tpucc.isa.listing.lines import Directive, read_lines
from tpucc.isa.program import LayerInfo, Program, bare_program
from tpucc.machine.instruction import RECORD
from tpucc.numerics import Int64
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Wait, with_waits
from tpucc.target import Target

LINES, LETTERS = 200, 20_000
"""The longest listing of a student's that is read."""


def listing_of(records: Sequence[Any]) -> Listing:
    """Instructions of one layer as a listing."""
    code = np.array(list(records), RECORD)
    return Listing(code, np.zeros(len(code), np.int64), np.arange(len(code)))


def program_of(listing: Listing, waits: Sequence[Wait], target: Target) -> tuple[Program, Int64]:
    """A program of the listing with waits, and for each of its instructions the number in the listing, -1 for a wait.

    It is one layer, and all of its multiplies have one tile, as listings have no `read_weights`.
    """
    made = with_waits(replace(listing, placed=np.arange(len(listing))), waits)
    layer = np.zeros(len(made), np.uint32)
    parts = {"layers": (LayerInfo("listing", "listing", Origin(())),), "layer_of": layer, "written_tiles": 1, "machine": listing.machine}
    return bare_program(name="listing", target=target, instructions=made.records, **parts), made.placed


def not_plain(text: str, task: str, directives: Collection[str]) -> tuple[int, str] | None:
    """The line and the reason for which a student's listing isn't read: it is too long, or has other directives than those that the `task`
    leaves to the student. None if it is plain."""
    code = [line for line in map(str.strip, text.removeprefix("\ufeff").split("\n")) if line and line[0] not in ";|"]
    if len(code) > LINES or len(text) > LETTERS:
        return 0, f"the program has more than {LINES} lines, and needs far fewer"
    lines = read_lines(text, Errors())  # the assembler tells what isn't well formed
    for directive in (*lines.directives, *(line for line in lines.code if isinstance(line, Directive))):
        if directive.name not in directives:
            number, allowed = directive.head.span.line, f"; you may write .{' and .'.join(directives)}" if directives else ""
            return number, f"line {number}: .{printable(directive.name)} is part of the {task}, not of a solution{allowed}"
    return None
