"""Tile programs in a valid and bad order, drawn in families: each has something else to win."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from tpucc import api
from tpucc.isa.effects import effects
from tpucc.labs.plain_stages import plain_lines
from tpucc.layers.partition import partition
from tpucc.lowering.lower import drafts_of
from tpucc.lowering.tileprogram import TileProgram, flat
from tpucc.machines.v1 import Opcode
from tpucc.stages.product_lines import lowerer_of, read_product
from tpucc.stages.products import ProductLayer, WrittenProduct, lower_product
from tpucc.target import Target

CHUNK = 4
"""Rows of each sum."""


@dataclass(frozen=True, slots=True)
class Net:
    """Chains of dense layers side by side: the widths of each, its input's first; and the batch."""

    chains: tuple[tuple[int, ...], ...]
    batch: int

    @property
    def source(self) -> str:
        """The model's text."""
        inputs = ", ".join(f"x{n}: f32[batch, {widths[0]}] in [-1.0, 1.0]" for n, widths in enumerate(self.chains))
        lines = [f"    y{n} = {_nested(f'x{n}', widths[1:], n)}" for n, widths in enumerate(self.chains)]
        results = ", ".join(f"y{n}" for n in range(len(self.chains)))
        return "\n".join((f"param batch = {self.batch}", HEAD, f"model lab6({inputs}):", *lines, f"    return {results}", ""))


Family = Callable[[Random], Net]


def reuse(draw: Random) -> Net:
    """One layer or two over many rows: each tile is needed by every chunk."""
    widths = (4 * draw.randrange(2, 4), 4 * draw.randrange(1, 4), *(4,) * draw.randrange(2))
    return Net((widths,), CHUNK * draw.randrange(4, 6))


def beside(draw: Random) -> Net:
    """Narrow chains over few rows: while one waits for its activation, another can multiply."""
    return Net(tuple((4, *(4,) * draw.randrange(2, 5)) for _ in range(draw.randrange(3, 5))), CHUNK)


def arriving(draw: Random) -> Net:
    """Wide inputs that take as long on the host link as their products take: what is computed while others arrive decides."""
    return Net(tuple((4 * draw.randrange(2, 4), 8, 4) for _ in range(2)), CHUNK * 2)


def several(draw: Random) -> Net:
    """A little of all."""
    chains = tuple(tuple(4 * draw.randrange(1, 4) for _ in range(draw.randrange(2, 4))) for _ in range(2))
    return Net(chains, CHUNK * draw.randrange(2, 4))


def plain_order(net: Net, target: Target, transfers: str, seed: int) -> TileProgram:
    """The net's tile program, lowered plainly: one chain after the other for an even `seed`, else in a random, valid order.

    Each sum's multiplies and its activation stay together. What `transfers` asks for holds: see `checks.Rules`. Where they keep their
    order, all reads stand first, the last one needed first, so that there is something to win.
    """
    tiles, draw = lowered(net, target), Random(f"{seed}/{net}")
    jobs = list(_jobs(tiles))
    touched = effects(flat(tiles))
    rows = [touched.source.rows(index).tolist() for index in range(len(tiles))]
    writer = {row: number for number, job in enumerate(jobs) for index in job for row in touched.target.rows(index).tolist()}
    needs = [{writer[row] for index in job for row in rows[index]} - {number} for number, job in enumerate(jobs)]
    first = {"kept": touched.host_reads, "at once": touched.host_writes}.get(transfers, np.zeros(len(tiles), np.bool_))
    order, done = list[int](), set[int]()
    while len(done) < len(jobs):
        ready = [number for number in range(len(jobs)) if number not in done and needs[number] <= done]
        urgent = [number for number in ready if first[jobs[number][0]]]
        done.add(chosen := draw.choice(urgent or ready) if seed % 2 else urgent[-1] if urgent else ready[0])
        order += jobs[chosen]
    return replace(tiles, instructions=tiles.instructions[order])


@cache
def compiled(net: Net, target: Target) -> api.Executable:
    """The net compiled by tpucc alone."""
    return api.compile_source(net.source, target=target, level=1)


@cache
def lowered(net: Net, target: Target) -> TileProgram:
    """The net's tile program, one sum after the other."""
    made = compiled(net, target).compilation
    assert made is not None
    assert made.layers is not None
    parts = partition(made.layers)
    lowerers = dict.fromkeys(("fc", "conv"), lowerer_of(plain_product))
    return configured(next(drafts_of(parts.device, target, segments=parts.segments, lowerers=lowerers).programs()))


def configured(tiles: TileProgram) -> TileProgram:
    """The same with a `set_configuration` before each activation, also where the one before chose the same block."""
    code = tiles.instructions
    chooses = code["opcode"] == Opcode.SET_CONFIGURATION
    latest = np.maximum.accumulate(np.where(chooses, np.arange(len(code)), -1))
    activates = code["opcode"] == Opcode.ACTIVATE
    order = [n for index in np.flatnonzero(~chooses).tolist() for n in ((latest[index], index) if activates[index] else (index,))]
    return replace(tiles, instructions=code[order])


def plain_product(layer: ProductLayer) -> WrittenProduct:
    return read_product(layer, plain_lines(layer, CHUNK) if layer.kind == "fc" else lower_product(layer))


def _jobs(tiles: TileProgram) -> Iterator[list[int]]:
    """The instructions of each sum, and each transfer: a sum ends with its activation."""
    job: list[int] = []
    for index, opcode in enumerate(tiles.instructions["opcode"].tolist()):
        if opcode in (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY):
            yield [index]
            continue
        job.append(index)
        if opcode == Opcode.ACTIVATE:
            yield job
            job = []


def _nested(value: str, widths: tuple[int, ...], chain: int) -> str:
    """Layers around a value."""
    for layer, units in enumerate(widths):
        value = f'relu(dense({value}, {units}, "c{chain}l{layer}"))'
    return value


HEAD = Path(__file__).with_name("layers.tpu").read_text("utf-8")
