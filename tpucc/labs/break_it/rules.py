"""A machine program as plain values, which is how a student's rule sees it; and the rules of which a term asks for one: what they demand,
which of the verifier's rules they are, and which instructions break them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from tpucc.isa.effects import Instructions, effects
from tpucc.isa.program import Program
from tpucc.labs.solutions import Solution
from tpucc.machines.v1 import SPECS, UNITS, Engine, Opcode

ENGINES = ("host", "weights", "matrix", "activation")


class PlainInstruction(TypedDict):
    """One instruction. Rows ascend, each once; a multiply that accumulates reads and writes its accumulators."""

    name: str
    engine: str
    """host, weights, matrix, activation; control where no engine does it."""
    reads: list[int]
    """Rows of the unified buffer."""
    writes: list[int]
    sums_read: list[int]
    """Rows of the accumulators."""
    sums_written: list[int]
    tile: int | None
    """The tile that it asks for."""
    switch: bool
    """Takes the oldest tile from the FIFO."""
    waits: list[tuple[str, list[str]]]
    """Each engine that waits, and the engines that it waits for."""


class Plain(TypedDict):
    """A program: its instructions in order, and how many tiles the FIFO holds."""

    fifo: int
    instructions: list[PlainInstruction]


def plain(program: Program) -> Plain:
    """A program whose instructions the verifier can read."""
    records, touched = program.instructions, effects(program.instructions)
    own: list[PlainInstruction] = []
    for each in Instructions(records, program.layer_of.astype("int64"), (), str):
        record = records[each.index]
        spec = SPECS[Opcode(int(record["opcode"]))]
        own.append(
            PlainInstruction(
                name=spec.mnemonic,
                engine=each.engine.name.lower(),
                reads=each.reads.buffer.tolist(),
                writes=each.writes.buffer.tolist(),
                sums_read=each.reads.accumulators.tolist(),
                sums_written=each.writes.accumulators.tolist(),
                tile=int(record["index"]) if touched.pushes[each.index] else None,
                switch=bool(touched.pops[each.index]),
                waits=[
                    (Engine(engine).name.lower(), _names(mask)) for engine, mask in spec.waits(int(record["index"]), int(record["engines"]))
                ],
            )
        )
    return Plain(fifo=program.target.weight_fifo_tiles, instructions=own)


def _names(mask: int) -> list[str]:
    return [unit.name.lower() for unit in UNITS if mask >> unit & 1]


def line(number: int, each: PlainInstruction) -> str:
    """An instruction as messages show it."""
    parts = [("reads", each["reads"]), ("writes", each["writes"])]
    both = each["sums_read"] == each["sums_written"]
    parts += [("sums read and written" if both else "sums read", each["sums_read"])]
    parts += [] if both else [("sums written", each["sums_written"])]
    told = [f"{name} {_rows(rows)}" for name, rows in parts if rows]
    told += [f"asks for tile {each['tile']}"] if each["tile"] is not None else []
    told += ["switches"] if each["switch"] else []
    told += [f"{engine} waits for {' and '.join(others)}" for engine, others in each["waits"]]
    return f"{number:>3} {each['name']:<18} {', '.join(told)}".rstrip()[:78]


def _rows(rows: list[int]) -> str:
    dense = rows[-1] - rows[0] == len(rows) - 1
    return f"{rows[0]}-{rows[-1]}" if dense and len(rows) > 1 else " ".join(map(str, rows))


Faults = Mapping[int, str]
"""The numbers of the instructions that break a rule, each with the reason."""


@dataclass(frozen=True)
class Rule:
    """A rule by its name. `codes` are the verifier's rules that say the same."""

    name: str
    says: str
    codes: tuple[str, ...]
    kept: str
    """What holds in a program that keeps the rule."""
    hint: str
    """In what a detector can be wrong."""

    def faults(self, program: Plain) -> Faults:
        """What the lab's own solution finds. An archive for students has no solution."""
        found: Faults = Solution.of(Path(__file__).parent, self).call("faults", program)
        return found


DECLARED = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))
RULES = {
    name: Rule(name, " ".join(said["says"].split()), tuple(said["codes"]), said["kept"], " ".join(said["hint"].split()))
    for name, said in DECLARED.items()
}
"""The rules by their names."""
