"""Group 6: the weight FIFO is never popped empty, never over its depth, and empty at the end; tiles that the program writes are there
before they are fetched."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpucc.isa.verify.rules import MAX_REPORTED, Context, Rule, Violation
from tpucc.numerics import Int64

RULES = (
    Rule("V0601", "tile to switch to", "A multiply switches only to a tile that a read_weights before it asked for."),
    Rule("V0602", "FIFO depth", "No more tiles are asked for and not yet switched to than the FIFO holds."),
    Rule("V0603", "empty FIFO", "At the end of the program no tile is left over."),
    Rule("V0604", "tile in use", "The first multiply switches to a tile, and so does the first one after another matrix unit's."),
    Rule("V0605", "the layer's tiles", "A multiply uses one of its layer's tiles, where the layer says which tiles it has."),
    Rule("V0606", "written tiles", "A tile without weights of its own is written once, and fetched only after that."),
    Rule("V0607", "fetch after write", "The weight fetch waits for the host's write of the tile that it fetches."),
)


def check(context: Context) -> Iterator[Violation]:
    """The violations of group 6."""
    queue = context.program.machine.queue
    if queue is None:
        return
    asker = " or ".join(context.program.machine.mnemonics(writing=queue.place))
    # lab 8 begin (the grader asks it): count the tiles in the FIFO
    effects, depth = context.effects, queue.depth(context.program.target)
    waiting = np.cumsum(effects.pushes.astype(np.int64) - effects.pops)
    starved, over = effects.pops & (waiting < 0), effects.pushes & (waiting > depth)
    yield from context.each("V0601", starved, f"switches to the next tile, and no {asker} has asked for one")
    yield from context.each("V0602", over, lambda i: f"asks for a tile while {waiting[i] - 1} wait; the FIFO holds {depth}")
    if not starved.any():
        left = np.flatnonzero(effects.pushes)[int(effects.pops.sum()) :]
        yield from context.each("V0603", left, "asks for a tile that no multiply switches to")
    none = effects.multiplies & (np.cumsum(effects.pops) == 0)
    yield from context.each("V0604", none, "has no tile in use: no multiply up to it switches")
    # lab 8 end
    taken = np.maximum.accumulate(np.where(effects.pops, np.arange(len(effects)), -1))
    other = effects.multiplies & (taken >= 0) & (effects.engine[taken] != effects.engine)
    yield from context.each("V0604", other, "doesn't switch, and another matrix unit has taken the last tile")
    yield from _foreign(context)


def written(context: Context, known: Int64) -> Iterator[Violation]:
    """The violations of V0606 and V0607; `known` are the `clocks` of all instructions."""
    effects, program = context.effects, context.program
    if program.machine.queue is None:
        return
    index = program.instructions["index"].astype(np.int64)
    stores, fetches = np.flatnonzero(effects.stores), np.flatnonzero(effects.asks & (index >= len(program.tiles)))
    first = np.full(program.tile_count, len(index), np.int64)
    np.minimum.at(first, index[stores], stores)
    again = stores[first[index[stores]] < stores]
    yield from context.each("V0606", again, lambda i: f"writes tile {index[i]:,} again")
    write = first[index[fetches]]
    early = write > fetches
    yield from context.each("V0606", fetches[early], lambda i: f"asks for tile {index[i]:,}, which nothing has written")
    writer = effects.engine[np.minimum(write, len(index) - 1)]
    racing = ~early & (write > known[fetches, np.minimum(writer, known.shape[1] - 1)])
    for fetch, other in zip(fetches[racing][:MAX_REPORTED].tolist(), write[racing].tolist(), strict=False):
        message = f"asks for tile {index[fetch]:,}, but doesn't wait for {{other}}, which writes it"
        yield context.violation("V0607", fetch, message, other)


def _foreign(context: Context) -> Iterator[Violation]:
    program, effects = context.program, context.effects
    tiles = context.resolved.tile
    pairs = [(index, fill[0]) for index, layer in enumerate(program.layers) for fill in layer.tile_fills]
    owned = np.array(pairs, np.int64).reshape(-1, 2)
    count = program.tile_count + 1
    named = np.isin(program.layer_of, owned[:, 0])
    good = np.isin(program.layer_of.astype(np.int64) * count + tiles, owned[:, 0] * count + owned[:, 1])
    wrong = effects.multiplies & named & ~good & (tiles >= 0)
    names = [program.layers[layer].name for layer in program.layer_of.tolist()] if wrong.any() else []
    yield from context.each("V0605", wrong, lambda i: f"uses tile {tiles[i]}, which is none of layer {names[i]}'s")
