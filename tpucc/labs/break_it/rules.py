"""A machine program as plain values, which is how a student's rule sees it; and the rules of which a term asks for one: what they demand,
which of the verifier's rules they are, and which instructions break them."""

from __future__ import annotations

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

    def faults(self, program: Plain) -> Faults:
        """What the lab's own solution finds. An archive for students has no solution."""
        found: Faults = Solution.of(Path(__file__).parent, self).call("faults", program)
        return found


RULES = {
    rule.name: rule
    for rule in (
        Rule(
            "unwritten",
            "An instruction that reads a row of the unified buffer which no instruction before it has written is at fault. Whether the row "
            "was at fault before makes no difference.",
            ("V0401",),
        ),
        Rule(
            "lost",
            "A multiply writes sums. One without `accumulate`, which reads none, begins new sums: it is at fault when one of its "
            "accumulator rows holds a sum that was begun or added to, and not activated since. An instruction that reads sums and writes "
            "none activates them. After a multiply that is at fault its new sums wait to be activated, as after any other.",
            ("V0502",),
        ),
        Rule(
            "fifo",
            "The FIFO is empty at first. An instruction that asks for a tile (`tile` is a number) puts one there; it is at fault when more "
            "tiles are there then than the FIFO holds, and they count all the same. An instruction that switches takes one; it is at fault "
            "when none is there, and takes nothing then.",
            ("V0601", "V0602"),
        ),
        Rule(
            "race",
            "Engines work at the same time, each on its own instructions in order. Two instructions of different engines collide when "
            "both touch the same row of the unified buffer, or of the accumulators, and at least one of them writes it. The later one is "
            "at fault unless it certainly starts after the earlier one has finished. A wait (E, [F, …]) at number n makes all later "
            "instructions of E start after those of F before n have finished, and after everything that the last of them has waited for. "
            "Instructions of the engine `control` touch nothing.",
            ("V0801", "V0802", "V0803"),
        ),
    )
}
