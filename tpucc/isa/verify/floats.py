"""The rules V0905 to V0909, of machines that compute floats by expressions: sums whose bits depend on their order, blocks, values of two
bytes, the expressions themselves, and what cores exchange."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.isa.effects import Bools
from tpucc.isa.fields import kinds
from tpucc.isa.verify.events import READ, WRITE, Events
from tpucc.isa.verify.memories import adding, by_rows
from tpucc.isa.verify.rules import Context, Rule, Violation
from tpucc.machine.parts import Contents, Memory
from tpucc.numerics import Int64

RULES = (
    Rule(
        "V0905",
        "passes in order",
        "The passes of a sum follow each other in the order of its depth, and nothing reads its rows between. Each but the last has a "
        "whole tile, and all together the depth that the layer says. Another order would give other bits. The rows that stream lie in "
        "this order, save those that were written since the pass before.",
    ),
    Rule(
        "V0906",
        "blocks",
        "A block has at least one row and one lane, at most as many of each as the matrix unit, and no lane after the last one. A tile "
        "that is pushed is taken once, before another one is pushed (V0601 to V0603).",
    ),
    Rule(
        "V0907",
        "halves",
        "A transfer halves values exactly where memory holds bfloat16, and what it stores so has been rounded.",
    ),
    Rule("V0908", "expressions", "An instruction names an expression of the program, and gives the sources that the expression reads."),
    Rule(
        "V0909",
        "exchanges",
        "The rows of an all-reduce are written before it, and nothing reads them between: it would read one core's own values. The numbers "
        "of cores and of microbatches are powers of two, for the mean over them is a tree.",
    ),
)


def expressions(context: Context) -> Iterator[Violation]:
    """The violations of V0908; when there are none, every expression that is computed can be."""
    program, machine = context.program, context.program.machine
    if machine.expressions is None:
        if program.expressions:
            yield Violation("V0908", f"expression 0 is none of {machine.name}, which has no expressions", about=("expression", "0"))
        return
    sources: list[set[str] | None] = []
    for number, text in enumerate(program.expressions):
        try:
            sources.append({*machine.expressions.parse(text).sources})
        except ValueError as error:
            sources.append(None)
            yield Violation("V0908", f"expression {number} {error}", about=("expression", str(number)))
    for code, function, indices in kinds(program.instructions):
        spec = machine.by_opcode[code]
        reads = spec.reads_for(function)
        if not reads & machine.expressions.place:
            continue
        given = {rows.operand for rows in machine.rows_in(reads)}
        index = program.instructions["index"][indices]
        known = index < len(sources)
        yield from context.each("V0908", indices[~known], f"computes an expression that isn't there; the program has {len(sources)}")
        for number in np.unique(index[known]).tolist():
            if (read := sources[number]) is not None and read != given:
                wanted, found = (" and ".join(sorted(names)) or "no source" for names in (read, given))
                yield from context.each("V0908", indices[index == number], f"gives {found}, and its expression reads {wanted}")


def blocks(context: Context) -> Iterator[Violation]:
    """The violations of V0906."""
    if context.program.machine.expressions is None:
        return
    records, mxu = context.program.instructions, context.program.target.mxu
    for code, function, indices in kinds(records):
        spec = context.program.machine.by_opcode[code]
        sizes = [operand for operand in spec.operands_for(function) if operand.space == "extent"]
        for operand in sizes:
            found = records[operand.field][indices].astype(np.int64)
            wrong = indices[(found < 1) | (found > mxu)]
            yield from context.each("V0906", wrong, f"has a block without {operand.key}, or with more than {mxu}")
        for operand in (each for each in spec.operands_for(function) if each.space == "lane"):
            last = records[operand.field][indices].astype(np.int64) + records[sizes[-1].field][indices]
            yield from context.each("V0906", indices[last > mxu], f"has lanes past the last of {mxu}")


def halves(context: Context) -> Iterator[Violation]:
    """The violations of V0907 by transfers."""
    half = _halves(context)
    for walks in context.effects.holding(Contents.BUFFERS):
        held = context.in_buffers(walks.low, lambda buffer: buffer.half)
        yield from context.each("V0907", walks.used & (held != half), "moves values of another size than memory holds there")


def exchanges(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """The violations of V0909 in a memory of buffers."""
    program = context.program
    if not program.machine.exchange:
        return
    exchanging = [spec.opcode for spec in program.machine.touching(reading=program.machine.exchange)]
    exchange = np.append(np.isin(program.instructions["opcode"], exchanging), False)  # the last is after the program's end
    parts = program.instructions["index"].astype(np.int64) * program.cores
    before = events.last((events.kind == READ) | (events.kind == WRITE))
    written = (before >= 0) & (events.kind[before] == WRITE)
    wrong = (events.kind == WRITE) & exchange[events.instruction] & ~written
    yield from by_rows(context, memory, events, wrong, "V0909", "averages {row}, which nothing has written, or something has read since")
    odd = exchange[:-1] & ((parts == 0) | (parts & (parts - 1) != 0))
    yield from context.each(
        "V0909", odd, lambda i: f"is a mean over {parts[i]:,} parts of {program.cores:,} cores, which is no power of two"
    )


def values(context: Context, events: Events, memory: Memory) -> Iterator[Violation]:
    """The violations of V0905 and V0907 in a memory of values."""
    if context.program.machine.expressions is None:
        return
    reads, writes = events.kind == READ, events.kind == WRITE
    rounded, before = _rounded(context), events.last(writes)
    stored = reads & (_halves(context) & context.effects.host_writes)[events.instruction]
    wrong = stored & ~((before >= 0) & rounded[events.instruction[before]])
    yield from by_rows(context, memory, events, wrong, "V0907", "stores {row} in two bytes, which nothing has rounded")
    summing = context.effects.multiplies & adding(context, memory)
    adds, latest = writes & summing[events.instruction], events.last(writes | reads)
    other = np.where(latest >= 0, events.instruction[latest], -1)
    follows = (latest >= 0) & writes[latest] & _same_sum(context, memory, events.instruction, other)
    yield from by_rows(context, memory, events, adds & ~follows, "V0905", "adds to {row}, which isn't a sum of the same rows that goes on")
    good = adds & follows
    pairs = np.unique(np.stack([events.instruction[good], other[good]], axis=1), axis=0)
    yield from _depths(context, memory, pairs, np.unique(events.instruction[writes]))


def _same_sum(context: Context, memory: Memory, instruction: Int64, other: Int64) -> Bools:
    """Whether two multiplies of a layer write the same rows."""
    low = np.max([np.where(walks.writes, walks.low, 0) for walks in context.effects.of(memory)], axis=0)
    high = np.max([np.where(walks.writes, walks.high, 0) for walks in context.effects.of(memory)], axis=0)
    layer, multiplies = context.program.layer_of, context.effects.multiplies
    same: Bools = multiplies[other] & (low[instruction] == low[other]) & (high[instruction] == high[other])
    of_layer: Bools = layer[instruction] == layer[other]
    return same & of_layer


def _depths(context: Context, memory: Memory, pairs: Int64, writing: Int64) -> Iterator[Violation]:
    """The violations of V0905 by the depths of passes. `pairs` are the multiplies that add, each with the one that it adds to. Those of
    the instructions that are `writing` are known."""
    program, effects = context.program, context.effects
    queue = program.machine.queue
    if queue is None or queue.depths is None or not effects.pops.any():
        return
    pushed = queue.depths(program.instructions[effects.pushes])
    depth = np.append(pushed, 0)[np.minimum(np.maximum(np.cumsum(effects.pops) - 1, 0), len(pushed))]
    source = np.max([np.where(walks.only_reads, walks.low, 0) for walks in effects.of(memory)], axis=0)
    adds, first = pairs.T
    yield from context.each("V0905", adds[depth[first] != program.target.mxu], "adds to a sum after a pass that isn't as deep as the unit")
    before = [add for add, to in pairs[source[adds] <= source[first]].tolist() if not _written(context, memory, source[add], to + 1, add)]
    yield from context.each("V0905", np.array(before, np.int64), "adds a pass that doesn't lie behind the one before")
    total = depth.copy()
    for add, to in pairs.tolist():
        total[add] = total[to] + depth[add]
    wanted = np.array([layer.weights[0] for layer in program.layers], np.int64)[program.layer_of]
    ends = np.zeros_like(effects.multiplies)
    ends[writing] = effects.multiplies[writing]
    ends[first] = False
    short = ends & (wanted > 0) & (total != wanted)
    yield from context.each("V0905", short, lambda i: f"completes a sum of depth {total[i]}; that of its layer is {wanted[i]}")


def _written(context: Context, memory: Memory, row: int, first: int, end: int) -> bool:
    """Whether an instruction from `first` to before `end` writes a row: what lay behind it before is gone."""
    between = slice(first, end)
    writing = [walks.writes[between] & (walks.low[between] <= row) & (row < walks.high[between]) for walks in context.effects.of(memory)]
    return bool(np.any(writing))


def _halves(context: Context) -> Bools:
    """Which instructions halve values."""
    flags = sum({row.flag for spec in context.program.machine.instructions for row in spec.flags.values() if row.is_half})
    found: Bools = (context.program.instructions["flags"] & np.uint8(flags)) != 0
    return found


def _rounded(context: Context) -> Bools:
    """Which instructions write rounded values: by an expression, or from rounded ones in memory."""
    program, kind = context.program, context.program.machine.expressions
    assert kind is not None
    computing = np.isin(program.instructions["opcode"], [spec.opcode for spec in program.machine.touching(reading=kind.place)])
    of_each = np.array([kind.parse(text).is_rounded for text in program.expressions], np.bool_)
    found = _halves(context) & context.effects.host_reads
    found[computing] = of_each[program.instructions["index"][computing]]
    return found
