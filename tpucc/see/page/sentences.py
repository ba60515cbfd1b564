"""What each instruction does, in the sentences of `SPECS`: their few forms, and the numbers that stand in them.

The sentences of a long program differ in their numbers alone, so that a page with both apart is small.
"""

from __future__ import annotations

import re
from typing import Any

from tpucc.diagnostics import printable
from tpucc.isa.program import Program
from tpucc.machines.v1 import SPECS, V1, Opcode
from tpucc.see.page.columns import deltas, plain

PLACE = "#"
"""Stands in a form where a number belongs."""
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")


def sentences_payload(program: Program) -> dict[str, Any]:
    """The forms of sentences; for each instruction the number of its form, and the numbers in all of them in order."""
    forms: dict[str, int] = {}
    used: list[int] = []
    numbers: list[int] = []
    for record in program.instructions:
        sentence = str(V1.read(record))
        used.append(forms.setdefault(_NUMBER.sub(PLACE, sentence), len(forms)))
        numbers += [int(found.replace(",", "")) for found in _NUMBER.findall(sentence)]
    return {"forms": list(forms), "form": deltas(used), "numbers": plain(numbers)}


def operands_payload(opcode: Opcode) -> dict[str, str]:
    """What each operand of a mnemonic means, by its key in the text."""
    return {operand.key: printable(operand.meaning) for operand in SPECS[opcode].operands}
