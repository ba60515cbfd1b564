"""Two compiled models side by side: how much longer one takes from end to end, what of that the host takes before and after the device, and
how many cycles the device takes more, in what, in which layers, and why.

The cycles of the matrix unit are divided as everywhere (`tpucc.explain.accounting`). So the differences of the rows add up to the whole
difference, in each layer and in the model. The rows that make most of the difference are named in `cause`, each with the numbers of both
programs that explain it (`GROUPS`): rows multiplied, tiles fetched, bytes that cross the link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np

from tpucc.diagnostics import counted, listed, printable
from tpucc.explain.attribution import INPUT
from tpucc.explain.comparison.layers import LayerDifference, enumerated, largest_words, layers_of
from tpucc.explain.comparison.pairs import Items, Pair, Seconds, Sides, begun, item_words, items_of, more, paired, spent, together
from tpucc.explain.comparison.reasons import COUNTS, MOST, explanation, reasons_of
from tpucc.explain.critical import Limit
from tpucc.explain.timed import Timed
from tpucc.isa.effects import effects
from tpucc.isa.program import Division
from tpucc.machines.v1 import SPECS, Opcode
from tpucc.numerics import AnyArray

APART = 1.05
"""If b takes so many times a's time, or more, of how many times it is for a batch alone, a stream of batches is told apart from it."""

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

    `names` are what the sides are called, `end_to_end` their entries of `stats.json`. `items` is there where their batches differ. `rows`
    are the rows of the accounting; they add up to `cycles`. `counts` are numbers of the programs by their names.
    `layers` are sorted by the size of their difference. `notes` are the compiler's that one side alone has. `stream` are the cycles of a
    batch in a stream of them. `on_device` are the sentences of `cause` about the device's cycles.
    """

    names: tuple[str, str]
    end_to_end: tuple[Mapping[str, Any], Mapping[str, Any]]
    cycles: Pair
    stream: Pair
    items: Items | None
    cause: str
    on_device: str
    rows: Mapping[Limit, Pair]
    counts: Mapping[str, Pair]
    layers: tuple[LayerDifference, ...]
    notes: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def difference(self) -> int:
        """How many cycles b takes more than a."""
        return self.cycles.difference

    def seconds(self, part: str = "seconds") -> Seconds:
        """The time of a batch from end to end, or a part of it by its key."""
        return Seconds(*(side[part] for side in self.end_to_end))


def compare(
    a: Timed,
    b: Timed,
    notes: tuple[Sequence[str], Sequence[str]] = ((), ()),
    names: tuple[str, str] = ("A", "B"),
    said: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """b beside a: a difference above zero means that b takes longer. The sentences call them as they are `said`. `notes` are all that the
    compiler has for each side."""
    sides = Sides(a, b, said)
    cycles = sides.pair(lambda side: side.stats["cycles"])
    rows = paired(*sides.each(spent))
    items = items_of(sides)
    layers = tuple(sorted(layers_of(sides, items), key=lambda layer: -abs(layer.cycles.difference)))
    moved = moved_cycles(sides, layers)
    is_moved = moved.difference * cycles.difference > 0 and abs(moved.difference) >= MOST * abs(cycles.difference)
    reasons = list(reasons_of(rows, partial(explanation, sides)))
    first = _sentence(sides, cycles)
    others = [
        *_other_models(sides, [layer for layer in layers if layer.kind != INPUT]),
        *_of_each_core(sides),
        *machines(sides),
        *_divided(sides),
        *by_vector_unit(sides, moved),
        *fetches(sides, rows, reasons),
        *reasons,
        *(other_peak(sides) if not cycles.difference else []),
        *(largest_words(layers, cycles.difference, said) if not is_moved else []),
    ]
    sentences = [
        f"{begun(sides.seconds('seconds').takes(said, ' from end to end'))}.",
        *([item_words(items, said)] if items else []),
        *_by_the_host(sides),
        f"On the device {first}",
        *others,
        *(_in_a_stream(sides) if not items else []),
    ]
    own = [tuple(note for note in side if note not in other) for side, other in (notes, notes[::-1])]
    return Comparison(
        names=names,
        end_to_end=sides.each(lambda side: side.stats["end_to_end"]),
        cycles=cycles,
        stream=sides.pair(lambda side: side.stats["stream"]["cycles"]),
        items=items,
        cause=" ".join(sentences),
        on_device=" ".join([begun(first), *others]),
        rows=rows,
        counts=_counts(sides),
        layers=layers,
        notes=(own[0], own[1]),
    )


def spent_more(a: Mapping[str, int], b: Mapping[str, int], said: tuple[str, str]) -> str:
    """What is said of two programs of one machine of which only the rows of the accounting are known: empty if b takes no longer."""
    rows = paired(a, b)
    cycles = together(rows.values())
    return " ".join([begun(_takes(cycles, said)), *reasons_of(rows)]) if cycles.difference > 0 else ""


def _counts(sides: Sides) -> dict[str, Pair]:
    """The numbers of the programs, and how many instructions there are of each kind."""
    opcodes = sides.each(lambda side: np.bincount(side.program.instructions["opcode"], minlength=max(Opcode) + 1).tolist())
    of_kinds = {f"  {opcode.mnemonic}": Pair(*(counts[opcode] for counts in opcodes)) for opcode in Opcode}
    return {name: sides.pair(count) for name, count in COUNTS.items()} | {name: pair for name, pair in of_kinds.items() if pair.a or pair.b}


def _sentence(sides: Sides, cycles: Pair) -> str:
    if not cycles.difference:
        return f"both take {cycles.a:,} cycles, with {_instructions(sides)}."
    clocks = {side.program.target.clock_hz for side in sides}
    times = f" At their clocks that is {Seconds(*sides.each(lambda side: side.stats['seconds'])).words}." if len(clocks) > 1 else ""
    return f"{_takes(cycles, sides.said)}{times}"


def _takes(cycles: Pair, said: tuple[str, str]) -> str:
    share = f", {100 * cycles.difference / cycles.a:+,.1f} %" if cycles.a else ""
    return f"{said[1]} takes {more(cycles.difference, 'cycles')} than {said[0]} ({cycles.b:,} instead of {cycles.a:,}{share})."


def _by_the_host(sides: Sides) -> Iterator[str]:
    """What the host takes before the device and after it, where that differs, with the operators that it computes there."""
    for part, when in (("before", "Before the device starts"), ("after", "After the device has finished")):
        seconds = sides.seconds(f"host_{part}")
        if seconds.difference:
            a, b = (f"{time} ({_host_work(side.stats['untimed'][part])})" for side, time in zip(sides, seconds.texts, strict=True))
            yield f"{when} the host takes {b} instead of {a}."


def _host_work(part: Mapping[str, Any]) -> str:
    """`patches, 1,280,000 elements`: to make integers of inputs and numbers of outputs has no name."""
    return ", ".join([*([enumerated(part["operators"])] if part["operators"] else []), counted(part["elements"], "element")])


def _in_a_stream(sides: Sides) -> Iterator[str]:
    """Where another side is sooner in a stream of batches, or b takes another number of times a's time there."""
    alone, streamed = sides.seconds("seconds"), sides.seconds("stream_seconds")
    apart = max(streamed.times, alone.times) >= APART * min(streamed.times, alone.times)
    if alone.difference * streamed.difference < 0 or apart:
        yield f"For each batch of a stream {streamed.takes(sides.said)}."


def _instructions(sides: Sides) -> str:
    a, b = sides.each(lambda side: side.program.instructions)
    if len(a) != len(b) or any((a[name] != b[name]).any() for name in ("opcode", "flags")):
        return "different instructions"
    if (a == b).all():
        return _with_other_values(sides)
    others = ((opcode, one.field) for opcode, spec in SPECS.items() for one in spec.operands if one.space not in ADDRESSES)
    moved = all((a[field] == b[field])[a["opcode"] == opcode].all() for opcode, field in others)
    return "the same instructions at other addresses" if moved else "different instructions"


def _with_other_values(sides: Sides) -> str:
    """Words for programs of equal instructions: which of their values differ."""
    a, b = sides.each(lambda side: side.program)
    values: dict[str, tuple[AnyArray, AnyArray]] = {"weights": (a.tiles, b.tiles), "constants": (a.constants, b.constants)}
    values |= {words: (a.blocks[fields], b.blocks[fields]) for words, fields in OF_BLOCKS.items()}
    other = [words for words, of_both in values.items() if not np.array_equal(*of_both)]
    return f"the same instructions; {listed(other)} differ" if other else "the same instructions"


def _other_models(sides: Sides, layers: Sequence[LayerDifference]) -> Iterator[str]:
    """Where the sources differ, what of their layers is not the same: the numbers compare different models then."""
    if sides.a.program.source_text == sides.b.program.source_text:
        return
    common = sum(all(layer.names) for layer in layers)
    of_a, of_b = (sum(bool(layer.names[side]) for layer in layers) for side in (0, 1))
    if not common:
        yield "The models differ: no layer has one name and one kind on both sides."
        return
    if 2 * common < min(of_a, of_b):
        a, b = sides.said
        alike = f"{common:,} {'is' if common == 1 else 'are'} of one name and kind on both sides"
        yield f"The models differ: of {of_a:,} layers of {a} and {of_b:,} of {b}, {alike}."
    alone = {side: [layer.name for layer in layers if layer.only == side] for side in "ab"}
    differences = {
        "the sizes of": [layer.names[1] for layer in layers if layer.is_resized],
        "what kind of layer is": [name for name in alone["b"] if name in alone["a"]],
    }
    if parts := [f"{what} {printable(enumerated(names))}" for what, names in differences.items() if names]:
        yield f"The{'se' if 2 * common < min(of_a, of_b) else ' models'} differ in {', and in '.join(parts)}."


def _of_each_core(sides: Sides) -> Iterator[str]:
    """Where the cores differ: whose the numbers are."""
    cores = sides.pair(lambda side: side.program.cores)
    if cores.difference:
        words = "rows, tiles and instructions are those of each core, bytes across the link those of all"
        yield f"{counted(cores.b, 'core')} instead of {cores.a:,}: {words}."


def _divided(sides: Sides) -> Iterator[str]:
    """Where a batch is divided in different ways: how on each side. Parts of other sizes of another batch are one way."""
    a, b = sides.each(lambda side: side.program.division)
    ways = [division and (division.parts, division.order, division.until) for division in (a, b)]
    if ways[0] != ways[1]:
        yield f"The batch of {sides.said[0]} is computed {_in_parts(a)}, that of {sides.said[1]} {_in_parts(b)}."


def _in_parts(division: Division | None) -> str:
    """`in 4 parts of at most 50 until conv2`, `in two halves of at most 100 that take turns`."""
    if division is None:
        return "in one piece"
    alternate = division.order == "alternating"
    parts = f"in {'two halves' if alternate else f'{division.parts:,} parts'} of at most {division.items:,}"
    how = {"alternating": " that take turns", "ahead": ", whose inputs are read ahead"}.get(division.order, "")
    return f"{parts}{how}{f' until {printable(division.until)}' if division.until else ''}"


SHOWN = 4
"""So many numbers of two machines that differ are named."""


def machines(sides: Sides) -> Iterator[str]:
    """The numbers in which the machines differ, as `--set` calls them: `The machines differ in weight_fifo_tiles (1 instead of 4).`"""
    a, b = sides.each(lambda side: msgspec.structs.asdict(side.program.target))
    other = [
        f"{field} ({_number(b[field])} instead of {_number(value)})"
        for field, value in a.items()
        if not isinstance(value, str) and value != b[field]
    ]
    if other:
        more = [counted(len(other) - SHOWN, "other number")] if len(other) > SHOWN else []
        yield f"The machines differ in {listed([*other[:SHOWN], *more])}."


def _number(value: float) -> str:
    """A size, or a rate: `4`, `98,304`, `3.4e+10`."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def by_vector_unit(sides: Sides, moved: Pair) -> Iterator[str]:
    """How many depthwise convolutions the vector unit computes, where that differs, or the machines do and it could. `moved` are the cycles
    of the layers that another unit computes."""
    counts = sides.pair(lambda side: len(_by_vector_unit(side)))
    if counts.difference:
        b, a = (f"{number:,}" if number else "none" for number in (counts.b, counts.a))
        cycles = f": those that move take {moved.b:,} cycles instead of {moved.a:,}" if moved.difference else ""
        yield f"The activation unit computes {b} of the depthwise convolutions in {sides.said[1]}, {a} in {sides.said[0]}{cycles}."
    elif counts.b and sides.a.program.target != sides.b.program.target:
        yield f"In both the activation unit computes {counted(counts.b, 'depthwise convolution')}."


def moved_cycles(sides: Sides, layers: Sequence[LayerDifference]) -> Pair:
    """The cycles of the layers of both sides that the vector unit computes on one of them alone."""
    a, b = sides.each(_by_vector_unit)
    return together(layer.cycles for layer in layers if not layer.only and (layer.names[0] in a) != (layer.names[1] in b))


def _by_vector_unit(side: Timed) -> frozenset[str]:
    program = side.program
    numbers = np.unique(program.layer_of[effects(program.instructions).weighs]).tolist()
    return frozenset(program.layers[number].name for number in numbers)


def fetches(sides: Sides, rows: Mapping[Limit, Pair], reasons: Sequence[str]) -> Iterator[str]:
    """What a tile of another weight memory takes, unless one of the `reasons` says it; and whether the matrix unit waits for none."""
    each = sides.pair(lambda side: side.program.target.tile_fetch_cycles)
    if not each.difference or not all(side.stats["tile_fetches"] for side in sides):
        return
    waits = together(rows[limit] for limit in (Limit.WEIGHT_MEMORY, Limit.WEIGHT_SHIFT))
    words = f"A tile is fetched in {each.b:,} cycles instead of {each.a:,}"
    if not waits.a and not waits.b:
        yield f"{words}; the matrix unit waits for none in either."
    elif not any(f"{each.b:,} cycles each instead of {each.a:,} cycles each" in reason for reason in reasons):
        yield f"{words}."


def other_peak(sides: Sides) -> Iterator[str]:
    """How far the buffers reach, where that differs: it is what allocators differ in."""
    peak = sides.pair(lambda side: side.stats["ub_peak_bytes"])
    if peak.difference:
        yield f"The buffers of {sides.said[1]} reach up to {peak.b:,} bytes of the unified buffer, those of {sides.said[0]} to {peak.a:,}."
