"""Instructions of v2 in sentences: the rows that an instruction reads, its function, and the rows of its result."""

from __future__ import annotations

from tpucc.machine.instruction import DecodedInstruction
from tpucc.machines.v2.functions import FUNCTIONS, Function
from tpucc.machines.v2.places import Flag


def loads(instruction: DecodedInstruction) -> str:
    return f"brings {_rows(instruction, 'host')} of HBM to {_rows(instruction, 'dest')} of vector memory{_half(instruction)}"


def stores(instruction: DecodedInstruction) -> str:
    return f"takes {_rows(instruction, 'ub')} of vector memory to {_rows(instruction, 'host')} of HBM{_half(instruction)}"


def pushes(instruction: DecodedInstruction) -> str:
    turned = "transposed block of" if Flag.TURNED in instruction.flags else "block of"
    return f"pushes the {turned} {_rows(instruction, 'ub')} of vector memory and {instruction['window_inner']} lanes as the next tile"


def multiplies(instruction: DecodedInstruction) -> str:
    first = "takes the next tile into use; " if Flag.SWITCH in instruction.flags else ""
    adds = "adding to" if Flag.ACCUMULATE in instruction.flags else "into"
    return f"{first}multiplies {_rows(instruction, 'ub')} of vector memory by the tile in use, {adds} {_rows(instruction, 'acc')}"


def computes(instruction: DecodedInstruction) -> str:
    count = instruction["outer"] * instruction["inner"]
    return f"computes expression {instruction['index']} for {count:,} rows of vector memory, into rows from {instruction['dest']:,} on"


def reduces(instruction: DecodedInstruction) -> str:
    what, lanes = FUNCTIONS[Function(instruction["function"])].summary, instruction["window_inner"]
    return f"computes {what}, of {lanes} lanes and {_rows(instruction, 'ub')} of vector memory, into {_rows(instruction, 'dest')}"


def turns(instruction: DecodedInstruction) -> str:
    first, count = instruction["ub"], instruction["window_inner"]
    return f"turns rows {first:,} to {first + count - 1:,} of vector memory, whose lanes become {_rows(instruction, 'dest')}"


def shifts(instruction: DecodedInstruction) -> str:
    count, start, to = instruction["window_inner"], instruction["window_outer"], instruction["index"]
    return f"moves {count} lanes from {start} to {to}, of {_rows(instruction, 'ub')} of vector memory to {_rows(instruction, 'dest')}"


def averages(instruction: DecodedInstruction) -> str:
    return f"makes {_rows(instruction, 'host')} of HBM their mean over all cores"


def gathers(instruction: DecodedInstruction) -> str:
    to = _rows(instruction, "dest")
    return f"brings rows of {_table(instruction)}, by the indices in {_rows(instruction, 'ub2')} of vector memory, to {to}"


def scatters(instruction: DecodedInstruction) -> str:
    source, indices = (_rows(instruction, field) for field in ("ub", "ub2"))
    return f"adds {source} of vector memory to rows of {_table(instruction)}, by the indices in {indices}"


def _table(instruction: DecodedInstruction) -> str:
    return f"the table of {instruction['index']:,} rows from row {instruction['host']:,} of HBM on"


def _half(instruction: DecodedInstruction) -> str:
    return ", as bfloat16" if Flag.HALF in instruction.flags else ""


def _rows(instruction: DecodedInstruction, field: str) -> str:
    """`rows 0 to 399`, `row 7`."""
    first, count = instruction[field], instruction.values.get("outer", 1) * instruction["inner"]
    return f"row {first:,}" if count == 1 else f"rows {first:,} to {first + count - 1:,}"
