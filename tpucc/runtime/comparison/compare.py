"""Two compiled models side by side: how many cycles one takes more than the other, in what, in which layers, and why.

The cycles of the matrix unit are divided as everywhere (`tpucc.sim.accounting`), so that the differences of the rows add up to the whole
difference, in each layer and in the model. The rows that make most of the difference are named in `cause`, together with those that wait
for the same (`GROUPS`), each with the numbers of both programs that explain it: rows multiplied, tiles fetched, bytes that cross the link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from tpucc.diagnostics import counted, listed, printable
from tpucc.isa.instructions import SPECS, Engine, Opcode
from tpucc.isa.program import Division
from tpucc.numerics import AnyArray
from tpucc.runtime.comparison.choices import by_vector_unit, fetches, machines, moved_cycles, other_peak
from tpucc.runtime.comparison.groups import FOR_HOST, FOR_SUMS, rows_of
from tpucc.runtime.comparison.items import Items, item_words, items_of
from tpucc.runtime.comparison.layer_rows import largest_words
from tpucc.runtime.comparison.layers import LayerDifference, enumerated, layers_of
from tpucc.runtime.comparison.pairs import Pair, more, paired, spent, together
from tpucc.runtime.comparison.reasons import MOST, explanation, reasons_of
from tpucc.runtime.runtime import Runtime
from tpucc.sim.durations import durations
from tpucc.values import dataclass

APART = 1.05
"""If b takes so many times a's cycles, or more, of how many times it is for a batch alone, a stream of batches is told apart from it."""

OF_BLOCKS = {
    "biases": ["bias"],
    "scales": ["multiplier", "zero", "low", "high", "zero_a", "zero_b", "scale_a", "scale_b"],
    "tables": ["has_table", "table", "points"],
}
"""What the fields of a parameter block are, in words."""

ADDRESSES = ("ub", "acc", "host")
"""The spaces of operands that are rows of a memory."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `tpucc compare` says.

    `names` are those of the sides. `items` is there where their batches differ. `rows` are those of the accounting, by their keys in
    `stats.json`; they add up to `cycles`. `counts` are numbers of the programs by their names. `layers` are sorted by the size of their
    difference. `notes` are the compiler's that one side alone has. `stream` are the cycles of a batch in a stream of them.
    """

    names: tuple[str, str]
    cycles: Pair
    stream: Pair
    items: Items | None
    cause: str
    rows: Mapping[str, Pair]
    counts: Mapping[str, Pair]
    layers: tuple[LayerDifference, ...]
    notes: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def difference(self) -> int:
        """How many cycles b takes more than a."""
        return self.cycles.difference


def compare(
    a: Runtime,
    b: Runtime,
    notes: tuple[Sequence[str], Sequence[str]] = ((), ()),
    names: tuple[str, str] = ("A", "B"),
    said: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """b beside a: a difference above zero means that b takes longer. The sentences call them as they are `said`. `notes` are all that the
    compiler has for each side."""
    sides = (a, b)
    cycles = Pair(a.stats["cycles"], b.stats["cycles"])
    stream = Pair(a.stats["stream"]["cycles"], b.stats["stream"]["cycles"])
    rows = paired(*(spent(side) for side in sides))
    items = items_of(sides)
    layers = tuple(sorted(layers_of(sides, items), key=lambda layer: -abs(layer.cycles.difference)))
    moved = moved_cycles(sides, layers)
    is_moved = moved.difference * cycles.difference > 0 and abs(moved.difference) >= MOST * abs(cycles.difference)
    reasons = list(reasons_of(rows, Pair(*(FOR_HOST.count(side) for side in sides)), partial(explanation, sides)))
    sentences = [
        _sentence(sides, cycles, said),
        *([item_words(items, said)] if items else []),
        *_other_models(sides, layers),
        *_of_each_core(sides),
        *machines(sides),
        *_divided(sides, said),
        *by_vector_unit(sides, moved, said),
        *fetches(sides, rows, reasons),
        *reasons,
        *(other_peak(sides, said) if not cycles.difference else []),
        *(largest_words(layers, cycles.difference, said) if not is_moved else []),
        *(_in_a_stream(sides, cycles, stream, said) if not items else []),
    ]
    own = [tuple(note for note in side if note not in other) for side, other in (notes, notes[::-1])]
    return Comparison(names, cycles, stream, items, " ".join(sentences), rows, _counts(sides), layers, (own[0], own[1]))


def spent_more(a: Mapping[str, int], b: Mapping[str, int], said: tuple[str, str]) -> str:
    """What is said of two programs of one machine of which only the rows of the accounting are known: empty if b takes no longer."""
    rows = paired(a, b)
    cycles = together(list(rows.values()))
    return " ".join([_longer(cycles, said), *reasons_of(rows)]) if cycles.difference > 0 else ""


def _counts(sides: tuple[Runtime, Runtime]) -> dict[str, Pair]:
    numbers: dict[str, Callable[[Runtime], int]] = {
        "multiply-accumulates of the device": lambda side: side.stats["macs"],
        "multiply-accumulates of the host": lambda side: side.stats["host_macs"],
        "rows multiplied": rows_of(Engine.MATRIX),
        "rows through the activation unit": rows_of(Engine.ACTIVATION),
        **{part.name: part.count for part in (FOR_HOST, FOR_SUMS)},
        "weight tiles": lambda side: side.stats["tiles"],
        "tiles fetched": lambda side: side.stats["tile_fetches"],
        "bytes from the host": lambda side: side.stats["host_bytes"]["in"],
        "bytes to the host": lambda side: side.stats["host_bytes"]["out"],
        "host steps": lambda side: side.stats["host_steps"],
        "unified buffer, bytes at most": lambda side: side.stats["ub_peak_bytes"],
        "instructions": lambda side: side.stats["instructions"],
    }
    found = {name: Pair(*(int(count(side)) for side in sides)) for name, count in numbers.items()}
    opcodes = [np.bincount(side.program.instructions["opcode"], minlength=max(Opcode) + 1) for side in sides]
    own = {f"  {opcode.mnemonic}": Pair(*(int(counts[opcode]) for counts in opcodes)) for opcode in Opcode}
    return found | {name: pair for name, pair in own.items() if pair.a or pair.b}


def _sentence(sides: tuple[Runtime, Runtime], cycles: Pair, said: tuple[str, str]) -> str:
    if not cycles.difference:
        return f"Both take {cycles.a:,} cycles, with {_instructions(sides)}."
    return f"{_longer(cycles, said)}{_at_their_clocks(sides, [side.stats['seconds'] for side in sides])}"


def _at_their_clocks(sides: tuple[Runtime, Runtime], seconds: Sequence[float]) -> str:
    """The times that cycles take, where the clocks differ."""
    a, b = durations(seconds)
    return f" At their clocks that is {b} instead of {a}." if _clocks(sides) != 1 else ""


def _clocks(sides: tuple[Runtime, Runtime]) -> float:
    """How many times as long as a's a cycle of b takes."""
    a, b = (side.program.target.clock_hz for side in sides)
    return float(a / b)


def _longer(cycles: Pair, said: tuple[str, str]) -> str:
    words = _takes(cycles, said)
    return f"{words[0].upper()}{words[1:]}"


def _takes(cycles: Pair, said: tuple[str, str]) -> str:
    share = f", {100 * cycles.difference / cycles.a:+,.1f} %" if cycles.a else ""
    return f"{said[1]} takes {more(cycles.difference, 'cycles')} than {said[0]} ({cycles.b:,} instead of {cycles.a:,}{share})."


def _in_a_stream(sides: tuple[Runtime, Runtime], cycles: Pair, stream: Pair, said: tuple[str, str]) -> Iterator[str]:
    """Where another side is sooner in a stream of batches, or b takes another number of times a's cycles there."""
    apart = max(stream.times, cycles.times) >= APART * min(stream.times, cycles.times)
    alone, streamed = (pair.times * _clocks(sides) for pair in (cycles, stream))
    if (alone - 1) * (streamed - 1) < 0 or apart:
        words = _takes(stream, said) if stream.difference else f"both take {stream.a:,} cycles."
        yield f"For each batch of a stream, {words}{_at_their_clocks(sides, [side.stats['stream']['seconds'] for side in sides])}"


def _instructions(sides: tuple[Runtime, Runtime]) -> str:
    a, b = (side.program.instructions for side in sides)
    if len(a) != len(b) or any((a[name] != b[name]).any() for name in ("opcode", "flags")):
        return "different instructions"
    if (a == b).all():
        return _with_other_values(sides)
    others = ((opcode, one.field) for opcode, spec in SPECS.items() for one in spec.operands if one.space not in ADDRESSES)
    moved = all((a[field] == b[field])[a["opcode"] == opcode].all() for opcode, field in others)
    return "the same instructions at other addresses" if moved else "different instructions"


def _with_other_values(sides: tuple[Runtime, Runtime]) -> str:
    """The same instructions: whether they compute the same."""
    a, b = (side.program for side in sides)
    values: dict[str, tuple[AnyArray, AnyArray]] = {"weights": (a.tiles, b.tiles), "constants": (a.constants, b.constants)}
    values |= {words: (a.blocks[fields], b.blocks[fields]) for words, fields in OF_BLOCKS.items()}
    other = [words for words, of_both in values.items() if not np.array_equal(*of_both)]
    return f"the same instructions; {listed(other)} differ" if other else "the same instructions"


def _other_models(sides: tuple[Runtime, Runtime], layers: Sequence[LayerDifference]) -> Iterator[str]:
    """Where the sources differ, what of their layers is not the same: the numbers compare different models then."""
    if sides[0].program.source_text == sides[1].program.source_text:
        return
    common = sum(all(layer.names) for layer in layers)
    of_a, of_b = (sum(bool(layer.names[side]) for layer in layers) for side in (0, 1))
    if not common:
        yield "The models differ: no layer has one name and one kind on both sides."
        return
    if 2 * common < min(of_a, of_b):
        yield f"The models differ: of A's {of_a:,} layers and B's {of_b:,}, {common:,} are of one name and kind on both sides."
    alone = {side: [layer.name for layer in layers if layer.only == side] for side in "ab"}
    differences = {
        "the sizes of": [layer.names[1] for layer in layers if layer.is_resized],
        "what kind of layer is": [name for name in alone["b"] if name in alone["a"]],
    }
    if parts := [f"{what} {printable(enumerated(names))}" for what, names in differences.items() if names]:
        yield f"The{'se' if 2 * common < min(of_a, of_b) else ' models'} differ in {', and in '.join(parts)}."


def _of_each_core(sides: tuple[Runtime, Runtime]) -> Iterator[str]:
    """Where the cores differ: whose the numbers are."""
    cores = Pair(*(side.program.cores for side in sides))
    if cores.difference:
        words = "rows, tiles and instructions are those of each core, bytes across the link those of all"
        yield f"{counted(cores.b, 'core')} instead of {cores.a:,}: {words}."


def _divided(sides: tuple[Runtime, Runtime], said: tuple[str, str]) -> Iterator[str]:
    """Where a batch is divided in different ways: how on each side. Parts of other sizes of another batch are one way."""
    a, b = (side.program.division for side in sides)
    ways = [division and (division.parts, division.order, division.until) for division in (a, b)]
    if ways[0] != ways[1]:
        yield f"The batch of {said[0]} is computed {_in_parts(a)}, that of {said[1]} {_in_parts(b)}."


def _in_parts(division: Division | None) -> str:
    """`in 4 parts of at most 50 until conv2`, `in two halves of at most 100 that take turns`."""
    if division is None:
        return "in one piece"
    alternate = division.order == "alternating"
    parts = f"in {'two halves' if alternate else f'{division.parts:,} parts'} of at most {division.items:,}"
    how = {"alternating": " that take turns", "ahead": ", whose inputs are read ahead"}.get(division.order, "")
    return f"{parts}{how}{f' until {printable(division.until)}' if division.until else ''}"
