"""Plans: parts of a listing that the host sends to the machine, one after the other. Each shows one thing about data flow."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from tpucc.isa.effects import Instruction
from tpucc.labs.lab import Term
from tpucc.labs.listings import listing_of
from tpucc.machines.v1 import V1, Function, Opcode
from tpucc.schedule.listing import Listing

Part = tuple[int, int, list[int]]
"""The first instruction, the one after the last, and the parts that may come next: none of a part that is the last one."""
Motif = Sequence[Sequence[Any]]
"""Parts as `plans.toml` writes them: the instructions, and the parts that may come next."""
DECLARED = tomllib.loads(Path(__file__).with_name("plans.toml").read_text("utf-8"))
MOTIFS: Mapping[str, Mapping[str, Mapping[str, Motif]]] = DECLARED["motifs"]
"""By function, by kind, by name."""
LINE = re.compile(r"(\w)('?) ([<>=]) (\w)(?: \+ (\w))?")
STEPS = 12
"""Parts of the longest walk."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The term's rules: the host's first `inputs` rows are new for each part; it keeps the buffer's rows `low` up to `high`, which are
    `size`; it may stop after any part, or only where no part comes next."""

    inputs: int = 8
    low: int = 4
    size: int = 2
    anywhere: bool = False

    @property
    def kept(self) -> str:
        """The rows that are kept, as a set in Python."""
        return f"{{{', '.join(map(str, range(self.low, self.low + self.size)))}}}"


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("dataflow")
    return Rules(draw.randrange(6, 13), draw.randrange(1, 10), draw.choice((2, 3)), draw.random() < 0.5) if draw else Rules()


@dataclass(frozen=True, eq=False)
class Plan:
    """A listing and its parts. The host begins with part 0."""

    listing: Listing
    parts: list[Part]

    @cached_property
    def code(self) -> list[Instruction]:
        """The instructions."""
        return list(self.listing)

    @property
    def asked(self) -> tuple[Listing, list[Part]]:
        """What a submission is given: copies, which it may change, and which can travel, as nobody has looked at the instructions."""
        return listing_of(list(self.listing.records)), [(first, end, list(after)) for first, end, after in self.parts]

    def walk(self, draw: Random) -> list[int]:
        """Parts that the host may send, one after the other."""
        found = [0]
        while (after := self.parts[found[-1]][2]) and len(found) < STEPS:
            found.append(draw.choice(after))
        return found

    def along(self, walk: Sequence[int], stays: frozenset[int]) -> Listing:
        """What the machine does on a walk, of the instructions that stay."""
        return listing_of([self.listing.records[n] for p in walk for n in range(*self.parts[p][:2]) if n in stays])

    def effect(self, walk: Sequence[int], stays: frozenset[int], rules: Rules, numbers: dict[object, int]) -> list[tuple[str, object]]:
        """What the host gets on a walk, in words, each with its value.

        A value is a number for what it was made of, from `numbers`: with the same of these, equal values are equal, whatever is left out.
        """
        buffer, host, found = dict[int, object](), dict[int, object](), list[tuple[str, object]]()
        for step, p in enumerate(walk):
            host |= {row: ("input", row, step) for row in range(rules.inputs)}
            first, end, after = self.parts[p]
            for i in (self.code[n] for n in range(first, end) if n in stays):
                rows, sent = i.writes.buffer.tolist(), i.writes.host.tolist()
                read = tuple(buffer.get(row, ("buffer", row)) for row in i.reads.buffer.tolist())
                brought = [host.get(row, ("host", row)) for row in i.reads.host.tolist()]
                made = [numbers.setdefault((i.text, row, read), len(numbers)) for row in rows]
                buffer |= zip(rows, brought or made, strict=True)
                host |= zip(sent, read, strict=False)
                found += [(f"row {row} of the host, which instruction {i.index} writes", host[row]) for row in sent]
            if rules.anywhere or not after:
                kept = range(rules.low, rules.low + rules.size)
                found += [(f"row {row}, which is kept after part {p}", buffer.get(row, ("buffer", row))) for row in kept]
        return found


def plan(draw: Random, rules: Rules, motif: Motif, beside: str = "", shuffled: bool = True) -> Plan:
    """The plan of a motif, with rows for its letters. Instructions `beside` it stand somewhere; all parts but the first change places."""
    texts = [text.split("; ") for text, *_ in motif]
    if beside in DECLARED["beside"]:
        text = draw.choice(texts)
        place = draw.randrange(len(text) + 1)
        text[place:place] = DECLARED["beside"][beside].split("; ")
    order, letters = list(range(1, len(motif))), sorted({letter for text in texts for line in text for letter in re.findall(r"\w", line)})
    if shuffled:
        draw.shuffle(order)
        draw.shuffle(letters)
    places, order = _places(rules, letters), [0, *order]
    records, parts = list[Any](), list[Part]()
    for p in order:
        first = len(records)
        records += [_record(line, places, rules) for line in texts[p]]
        parts.append((first, len(records), sorted(order.index(q) for q in motif[p][1:])))
    return Plan(listing_of(records), parts)


def _places(rules: Rules, letters: Sequence[str]) -> dict[str, int]:
    """The first row of each letter. Those of the host stand side by side at the border of its inputs; rows that are kept are k's alone."""
    size, high = rules.size, rules.low + rules.size
    buffer = [*range(rules.low - size, -1, -size), *range(high, high + size * len(letters), size)]
    kinds = (
        (str.islower, sorted(buffer[: len(letters)])),
        (str.isupper, range(rules.inputs, 999, size)),
        (str.isdigit, range(rules.inputs - size, -1, -size)),
    )
    found = {"k": rules.low}
    for is_one, rows in kinds:
        found |= zip((letter for letter in letters if is_one(letter) and letter != "k"), rows, strict=False)
    return found


def _record(line: str, places: Mapping[str, int], rules: Rules) -> Any:
    """An instruction of a motif."""
    match = LINE.fullmatch(line)
    assert match is not None, line
    name, one, verb, first, second = match.groups()
    row, other, count = places[name], places[first], 1 if one else rules.size
    if verb == "<":
        return V1.record(Opcode.READ_HOST_MEMORY, host=other, dest=row, inner=count)
    if verb == ">":
        return V1.record(Opcode.WRITE_HOST_MEMORY, host=other, ub=row, inner=count)
    if second is None:
        return V1.record(Opcode.VECTOR, function=Function.COPY, ub=other, dest=row, inner=count)
    return V1.record(Opcode.VECTOR, function=Function.ADD, ub=other, ub2=places[second], dest=row, inner=count)


def mixed(draw: Random, rules: Rules, beside: str) -> Plan:
    """Anything in three to five parts: each can be reached, and most go on with any other."""

    def line() -> str:
        row, one, a, b = (draw.choice(some) for some in ("abck", ("", "", "", "'"), "abck", "abck"))
        rest = (f"< {draw.choice('AB0')}", f"< {draw.choice('AB')}", f"> {draw.choice('ABC')}", f"= {a}", f"= {a} + {b}")
        return f"{row}{one} {draw.choice(rest)}"

    count = draw.randrange(3, 6)
    after: list[set[int]] = [set() for _ in range(count)]
    for p in range(1, count):
        after[draw.randrange(p)].add(p)
    for p in range(count - 1):
        after[p] |= {draw.randrange(count) for _ in range(draw.randrange(2))}
    return plan(draw, rules, [["; ".join(line() for _ in range(draw.randrange(2, 6))), *sorted(after[p])] for p in range(count)], beside)
