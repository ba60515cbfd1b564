"""The steps of scheduling in their order; and short ones: joined transfers, weight fetches, the end, the memory map, the host's part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpucc.diagnostics import Origin, Source
from tpucc.ir import Graph
from tpucc.isa.effects import Bools, Effects, effects
from tpucc.isa.program import HostBuffer, HostWork, LayerInfo, Program, Resident, stretch_ends
from tpucc.layers.partition import HostStep, computing, partition
from tpucc.lowering.tileprogram import TileProgram, VirtualBuffer, surrounding_program
from tpucc.machine.instruction import RECORD, Records
from tpucc.machine.machine import Machine
from tpucc.machines import DEFAULT
from tpucc.numerics import Int64
from tpucc.schedule.allocate import Allocate, Allocation, Stay, allocate
from tpucc.schedule.allocate_accumulators import allocate_accumulators
from tpucc.schedule.allocate_buffers import allocate_buffers
from tpucc.schedule.listing import Listing, blank
from tpucc.schedule.synchronise import Synchronise, Wait, synchronise, with_waits
from tpucc.target import Target

_END = LayerInfo("end", "move", Origin(made_by="schedule"), choice="nothing is left for the device to do")
"""The layer of the instructions of a program without work."""


def with_end(listing: Listing) -> Listing:
    """The listing with its end: an interrupt that tells the host that the program is done, if the machine has interrupts, and a halt. Both
    belong to the layer of the last instruction."""
    interrupts = [spec.opcode for spec in listing.machine.touching(reading=listing.machine.ports)]
    end = np.concatenate([blank(1, opcode) for opcode in (*interrupts, listing.machine.halt)])
    end["index"][:-1] = np.count_nonzero(np.isin(listing.records["opcode"], interrupts))
    layer = listing.layer[-1] if len(listing) else 0
    return listing.inserted(np.full(len(end), len(listing)), end, np.full(len(end), layer))


def residents(listing: Listing, stays: Sequence[Stay], buffers: Sequence[VirtualBuffer]) -> tuple[Resident, ...]:
    """The program's memory map: the stays with the indices of the final instructions, in the order of their first instructions."""
    final = np.flatnonzero(listing.placed >= 0).tolist()
    named = ((buffers[each.buffer], each) for each in stays)
    found = (Resident(of.name, of.layer, each.start, of.rows, final[each.first], final[each.last]) for of, each in named)
    return tuple(sorted(found, key=lambda resident: (resident.first, resident.start)))


def prefetch_entries(listing: Listing, target: Target) -> Listing:
    """The listing with the instructions that fetch the entries of the machine's queue (v1: the weight tiles). Each entry is fetched as many
    switches before its own switch as the queue has places, and after the write of the entry if the program writes it.

    `listing` has the entry of a switch in its field `index`. A switch to the entry that is in use already is removed.
    """
    machine, queue = listing.machine, listing.machine.queue
    if queue is None:
        return listing
    touched, depth = effects(listing.records, machine), queue.depth(target)
    records = listing.records.copy()
    switches = np.flatnonzero(touched.pops)
    tiles = records["index"][switches].astype(np.int64)
    records["index"][touched.multiplies] = 0
    changes = np.diff(tiles, prepend=-1) != 0
    records["flags"][switches[~changes]] &= ~np.uint8(machine.taking)
    switches, tiles = switches[changes], tiles[changes]
    before = np.zeros(len(switches), np.int64)
    before[depth:] = switches[:-depth] + 1
    if touched.stores.any():
        before = np.maximum.accumulate(np.maximum(before, 1 + _write_of(records, touched, tiles)))
    reads = blank(len(switches), next(machine.touching(writing=queue.place)).opcode)
    reads["index"] = tiles
    return replace(listing, records=records).inserted(before, reads, listing.layer[switches])


def _write_of(records: Records, touched: Effects, tiles: Int64) -> Int64:
    """The instruction that writes each tile; -1 where none writes it."""
    written = np.full(max(records["index"][touched.stores].max(initial=0), tiles.max(initial=0)) + 1, -1, np.int64)
    written[records["index"][touched.stores]] = np.flatnonzero(touched.stores)
    return written[tiles]


def entry_waits(listing: Listing) -> list[Wait]:
    """The waits of the unit that fetches the queue's entries for the unit that writes entries, each as early as possible."""
    machine, queue, touched = listing.machine, listing.machine.queue, effects(listing.records, listing.machine)
    if queue is None or not touched.stores.any():
        return []
    fetcher, writer = next(machine.touching(writing=queue.place)).engine, next(machine.touching(writing=queue.stored)).engine
    fetches = np.flatnonzero(touched.pushes)
    tiles = listing.records["index"][fetches].astype(np.int64)
    writes = _write_of(listing.records, touched, tiles)
    waits: list[Wait] = []
    previous, covered = -1, 0
    for fetch, write in zip(fetches.tolist(), writes.tolist(), strict=True):
        if write >= covered:
            covered = max(write, previous) + 1
            waits.append(Wait(covered, fetcher, (writer,)))
        previous = fetch
    return waits


def schedule(tiles: TileProgram, allocate: Allocate = allocate, synchronise: Synchronise = synchronise) -> Program:
    """The machine program of a tile program: rows and accumulators get addresses, weights are fetched ahead, engines are synchronised.

    The host's part (`prologue`, `epilogue`) and `source_text` are left empty. Raises `LimitError`: E0621 when one instruction's operands
    don't fit the unified buffer, E0623 when sums don't fit the accumulators.
    """
    groups = allocate_accumulators(tiles)
    allocation = join_transfers(allocate_buffers(tiles, allocate), tiles.target, tiles.machine)
    listing = prefetch_entries(_listing(tiles, allocation, groups), tiles.target)
    listing = with_end(with_waits(listing, [*synchronise(listing), *entry_waits(listing)]))
    return replace(
        surrounding_program(tiles),
        instructions=listing.records,
        layer_of=listing.layer.astype(np.uint32),
        layers=tiles.layers or (_END,),
        host=allocation.host,
        residents=residents(listing, allocation.stays, tiles.buffers),
        lower_bound_rows=allocation.lower_bound,
        notes=tiles.notes + allocation.notes,
    )


def require_fitting(tiles: TileProgram) -> None:
    """Raises the errors of `schedule`, without making a program."""
    allocate_accumulators(tiles)
    allocate_buffers(tiles)


def _listing(tiles: TileProgram, allocation: Allocation, groups: Int64) -> Listing:
    """Machine records of allocated instructions, with rows of accumulators for groups; a switch keeps its entry in `index`."""
    placed = allocation.instructions
    records = np.zeros(len(placed), RECORD)
    for field in RECORD.names or ():
        records[field] = placed[field]
    used = placed["group"] >= 0
    records["acc"][used] += groups[placed["group"][used]].astype(np.uint32)
    names = tuple(layer.name for layer in tiles.layers)
    return Listing(records, placed["layer"].astype(np.int64), np.arange(len(placed)), names, tiles.machine)


def with_host_part(program: Program, layers: Graph, source: Source, declared: Graph, cores: int = 1) -> Program:
    """The scheduled program with the host's graphs and the source.

    The prologue's inputs have the types that the source declares, in the sizes of one core's part: a range there is the user's, not one
    that was measured.
    """
    parts = partition(layers)
    types = {node.name: replace(node.type, shape=layers[node.name].type.shape) for node in declared.inputs}
    prologue = parts.prologue.with_nodes(replace(n, type=types[n.name]) if n.is_input else n for n in parts.prologue)
    return replace(
        program,
        name=layers.name,
        layers=_with_places(program.layers, parts.middle),
        source=source.name,
        source_text=source.text,
        prologue=str(prologue),
        epilogue=str(parts.epilogue),
        host_steps=tuple(HostWork(str(step.graph), step.reads, step.writes, step.elements) for step in parts.middle),
        cores=cores,
    )


def _with_places(layers: Sequence[LayerInfo], steps: Sequence[HostStep]) -> tuple[LayerInfo, ...]:
    """The layers, with the origins of the host's steps."""
    places = iter(_place(step.graph) for step in steps)
    return tuple(replace(layer, origin=next(places, layer.origin)) if layer.is_host_step else layer for layer in layers)


def _place(graph: Graph) -> Origin:
    """The origin of a step of the host: the origins of the nodes that it computes, or of all its nodes where it computes none."""
    origin, *others = [node.origin for node in computing(graph) or graph]
    return origin.merged(*others)


# Joins small transfers into larger ones, as each transfer costs the host link its latency.


def join_transfers(allocation: Allocation, target: Target, machine: Machine = DEFAULT) -> Allocation:
    """The allocation with each run of neighbouring transfers that continue each other as one transfer.

    A transfer whose bytes take as long as its latency isn't joined to the one before it: its rows may be needed later.
    """
    code = allocation.instructions
    moved = np.isin(code["opcode"], [spec.opcode for spec in machine.transfers])
    continues = _continues(code, moved, allocation.host) & (code["inner"] < target.half_rate_rows)
    index = np.cumsum(~continues) - 1
    kept = code[~continues].copy()
    kept["inner"][index[moved]] = 0
    np.add.at(kept["inner"], index[moved], code["inner"][moved])
    new = index.tolist()
    stays = tuple(replace(each, first=new[each.first], last=new[each.last]) for each in allocation.stays)
    return replace(allocation, instructions=kept, stays=stays)


def _continues(code: Records, moved: Bools, buffers: Sequence[HostBuffer]) -> Bools:
    """Whether each instruction moves the rows that follow the rows of the instruction before it, in the same direction and in host buffers
    of the same kind: [instructions]. `moved` says which instructions move rows."""
    host, rows = code["host"].astype(np.int64), code["inner"].astype(np.int64)
    buffer = code["ub"].astype(np.int64) + code["dest"]
    found = np.zeros(len(code), np.bool_)
    found[1:] = moved[1:] & (code["opcode"][1:] == code["opcode"][:-1]) & (code["layer"][1:] == code["layer"][:-1])
    found[1:] &= (np.diff(host) == rows[:-1]) & (np.diff(buffer) == rows[:-1])
    return found & (host < np.concatenate([np.zeros(1, np.int64), stretch_ends(buffers, host)])[:-1])
