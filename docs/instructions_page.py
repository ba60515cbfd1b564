"""The page of v1's instruction set, made from its definition."""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.diagnostics import listed
from tpucc.machine.instruction import RECORD, FunctionSpec, OperandSpec, Spec
from tpucc.machines.v1 import SPECS, Place
from tpucc.machines.v1.machine import parameter_block_dtype
from tpucc.machines.v1.places import FLAGS

PLACES = {
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
    return "\n".join([HEAD.format(size=RECORD.itemsize), *_record(), *(_mnemonic(spec) for spec in SPECS.values()), *_block(), PAPER])


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


def _mnemonic(spec: Spec) -> str:
    parts = [f"## {spec.mnemonic}\n\nOpcode {spec.opcode.value}; {spec.engine.name.lower()} engine. {spec.summary}\n"]
    if spec.operands:
        parts.append("| key | field | meaning | default |\n|---|---|---|---|")
        parts.extend(_operand(operand) for operand in spec.operands)
        parts.append("")
    if spec.functions:
        parts.append("| function | computes | reads |\n|---|---|---|")
        parts.extend(_function(row) for row in spec.functions.values())
        parts.append("")
    if spec.flags:
        parts.append(f"Flags: {', '.join(f'`{row.name}`' for row in spec.flags.values())}.\n")
    places = {"Reads": spec.reads, "Writes": spec.writes}
    touches = [f"{verb} {_places(touched)}." for verb, touched in places.items() if touched]
    return "\n".join([*parts, " ".join([*touches, (spec.cycles.__doc__ or "").partition("\n")[0]]), ""])


def _function(row: FunctionSpec) -> str:
    return f"| `{row.function.name.lower()}` | {row.summary} | {_places(row.reads)} |"


def _places(places: int) -> str:
    return listed([PLACES[place] for place in Place(places)])


def _operand(operand: OperandSpec) -> str:
    default = "" if operand.default is None else str(operand.default)
    return f"| `{operand.key}` | `{operand.field}` | {operand.meaning} | {default} |"


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
