"""The pages of the machines' instruction sets, made from their definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntFlag

from tpucc.diagnostics import listed
from tpucc.machine.instruction import RECORD, FunctionSpec, OperandSpec, Spec
from tpucc.machines.v1 import SPECS, Place
from tpucc.machines.v1.machine import parameter_block_dtype
from tpucc.machines.v1.places import FLAGS
from tpucc.machines.v2 import expressions, instructions, places

Places = Mapping[IntFlag, str]
PLACES: Places = {
    Place.UB: "rows of the unified buffer",
    Place.UB2: "rows of a second source",
    Place.WINDOWS: "windows of rows of the unified buffer",
    Place.KERNEL: "rows of weights",
    Place.DEST: "rows of the unified buffer",
    Place.ACC: "accumulators",
    Place.HOST: "rows of host memory",
    Place.FIFO: "the weight FIFO",
    Place.TILE: "the tile in use",
    Place.BLOCK: "the parameter block in use",
    Place.PORTS: "the host rows of ports",
    Place.MEMORY: "the tile in weight memory",
}
OF_TRAINING: Places = {
    places.Place.A: "rows of source a",
    places.Place.B: "rows of source b",
    places.Place.C: "rows of source c",
    places.Place.ROWS: "rows of vector memory",
    places.Place.BLOCK: "a block of vector memory",
    places.Place.SUMS: "rows of sums",
    places.Place.Y: "rows of vector memory",
    places.Place.OLD: "the lanes that stay",
    places.Place.HBM: "rows of HBM",
    places.Place.FIFO: "the tile in waiting",
    places.Place.TILE: "the tile in use",
    places.Place.EXPRESSION: "an expression",
    places.Place.CORES: "the same rows of all other cores",
    places.Place.TABLE: "rows of a table in HBM",
    places.Place.INDICES: "their indices",
}
LANES = 256
"""Lanes of the machine whose parameter block the page shows."""

HEAD = """# Instructions

An instruction is a record of {size} bytes, little endian, with the same fields for every mnemonic; fields that a mnemonic doesn't use are
zero. A program's instructions are one array of such records. In text, an instruction is `mnemonic key=value key=value, flag`; keys that are
left out have their default, and rows of a buffer are written `name+offset`.

Rows are walked in two dimensions: row (o, i) of a walk lies at `start + o · pitch + i · stride`, for o below `outer` and i below `inner`.
A stride of 0 repeats a row. Accumulators are always dense: row `acc + o · inner + i`.
"""

PAPER = """## What the paper's instruction looks like

The MatrixMultiply of TPU v1 has 12 bytes (Jouppi et al., ISCA 2017, section 2): 3 of unified-buffer address, 2 of accumulator address, 4 of
length (two dimensions for convolutions), and 3 of opcode and flags. Strides, bases and configuration live in registers that other
instructions set. Here they stand in the instruction: a line of a listing says all that it does, the verifier needs no hidden state, and
whole columns of a program can be worked on at once. Instruction bytes take no part in the timing, as in the paper, where the host sends
instructions ahead into a buffer.
"""


def instructions_page() -> str:
    """The page: the record byte by byte, each mnemonic with its operands and flags, and the parameter block."""
    return "\n".join(
        [HEAD.format(size=RECORD.itemsize), *_record(), *(_mnemonic(spec, PLACES) for spec in SPECS.values()), *_block(), PAPER]
    )


TRAINING_HEAD = """# Instructions of the training machine

The core of TPU v2 has the [record](instructions.md#the-record) of every machine, and these instructions.
[The training machine](../training-machine.md) says what they are for. Rows have 128 lanes of float32.
"""


def training_instructions_page() -> str:
    """The page of v2: each mnemonic, the flags, and the operations of expressions."""
    specs = instructions.SPECS.values()
    return "\n".join([TRAINING_HEAD, *(_mnemonic(spec, OF_TRAINING) for spec in specs), *_flags(), *_operations()])


def _flags() -> Iterator[str]:
    yield "## Flags\n\n| bit | flag | meaning |\n|---|---|---|"
    yield from (f"| {row.flag.bit_length() - 1} | `{row.name}` | {row.meaning} |" for row in places.FLAGS.values())


def _operations() -> Iterator[str]:
    most = f"{expressions.MOST_OPERATIONS} operations and {expressions.MOST_NUMBERS} numbers"
    yield f"\n## Expressions\n\nA text such as `max(a + b, 0.0)`: at most {most}, of the sources a, b and c, and of `lane` and"
    yield "`row`. The cost of an operation is a number of simple ones, counted. A register of rows takes as many cycles as there are"
    yield "sources, or half of the cost, whichever is more.\n"
    yield "| operation | of | gives | cost |\n|---|---|---|---|"
    for row in expressions.OPERATIONS.values():
        yield f"| `{row.name}` | {', '.join(row.takes)} | {row.gives} | {row.cost} |"
    yield ""


def _record() -> Iterator[str]:
    yield "## The record\n\n| bytes | field | type |\n|---|---|---|"
    assert RECORD.fields is not None
    for name in RECORD.names or ():
        kind, offset = RECORD.fields[name][:2]
        yield f"| {offset}–{offset + kind.itemsize - 1} | `{name}` | {_kind(kind.str)} |"
    yield "\nThe bits of `flags`, where an instruction has them:\n\n| bit | flag | meaning |\n|---|---|---|"
    yield from (f"| {row.flag.bit_length() - 1} | `{row.name}` | {row.meaning} |" for row in FLAGS.values())
    yield ""


def _kind(text: str) -> str:
    return {"i": "int", "u": "uint", "f": "float"}[text[1]] + str(8 * int(text[2:]))


def _mnemonic(spec: Spec, of: Places) -> str:
    parts = [f"## {spec.mnemonic}\n\nOpcode {spec.opcode.value}; {spec.engine.name.lower()} engine. {spec.summary}\n"]
    if spec.operands:
        parts.append("| key | field | meaning | default |\n|---|---|---|---|")
        parts.extend(_operand(operand) for operand in spec.operands)
        parts.append("")
    if spec.functions:
        parts.append("| function | computes | reads |\n|---|---|---|")
        parts.extend(_function(row, of) for row in spec.functions.values())
        parts.append("")
    if spec.flags:
        parts.append(f"Flags: {', '.join(f'`{row.name}`' for row in spec.flags.values())}.\n")
    ways = {"Reads": spec.reads, "Writes": spec.writes}
    touches = [f"{verb} {_places(touched, of)}." for verb, touched in ways.items() if touched]
    return "\n".join([*parts, " ".join([*touches, (spec.cycles.__doc__ or "").partition("\n")[0]]), ""])


def _function(row: FunctionSpec, of: Places) -> str:
    return f"| `{row.function.name.lower()}` | {row.summary} | {_places(row.reads, of)} |"


def _places(touched: int, of: Places) -> str:
    return listed([of[place] for place in sorted(of) if place & touched])


def _operand(operand: OperandSpec) -> str:
    default = "" if operand.default is None else str(operand.default)
    meaning = operand.meaning.replace("|", "\\|")  # a bar ends a cell
    return f"| `{operand.key}` | `{operand.field}` | {meaning} | {default} |"


def _block() -> Iterator[str]:
    kind = parameter_block_dtype(LANES)
    yield f"## The parameter block\n\nWhat `set_configuration` chooses, for {LANES} lanes: {kind.itemsize:,} bytes.\n"
    yield "| bytes | field | type |\n|---|---|---|"
    assert kind.fields is not None
    for name in kind.names or ():
        field, offset = kind.fields[name][:2]
        count = f"{_kind(field.base.str)} × {field.shape[0]}" if field.shape else _kind(field.str)
        yield f"| {offset}–{offset + field.itemsize - 1} | `{name}` | {count} |"
    yield "\n`activate`: `clamp(round(float32(acc + bias) · multiplier) + zero, low, high)`, then `table[value + 128]` if `has_table`."
    yield "With `wide`, for the value 256·h + f it is `p[h] + ((p[h + 1] − p[h])·f + 128 >> 8)`, where p[h] is `points[h + 128]`."
    yield "`vector` add, subtract: `round(scale_a · (a − zero_a) ± scale_b · (b − zero_b)) + zero`; multiply:"
    yield "`round(scale_a · ((a − zero_a) · (b − zero_b))) + zero`; clamp and table likewise. Average pooling:"
    yield "`round(scale_a · Σ(a − zero_a)) + zero`. All in float32, rounding to the nearest, ties to even.\n"
