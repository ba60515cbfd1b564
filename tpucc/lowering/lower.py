"""From the device graph to the tile program, split along the batch so that it fits the unified buffer, or is faster.

Every item of a batch is computed alone, so a program may do all layers for some items, then all layers for the next. Where that is for
room, the fewer parts the better, for each fetches the weights again; where it is for speed, see `overlap`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from tpucc.diagnostics import Diagnostic, LimitError, UsageError
from tpucc.ir.graph import Graph
from tpucc.isa.instructions import Records
from tpucc.isa.program import Division
from tpucc.lowering.count import is_countable, require_countable
from tpucc.lowering.emitter import Emitter
from tpucc.lowering.layout import Layout
from tpucc.lowering.liveness import buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.order import live_rows
from tpucc.lowering.overlap import overlapping_splits
from tpucc.lowering.plan import BUILT_IN, NO_SEGMENTS, UNLIMITED, Plan, make_plan
from tpucc.lowering.products import Lowerer
from tpucc.lowering.room import rows_at_once, shortage_of
from tpucc.lowering.sharding import Split, even
from tpucc.lowering.steps import emit_step
from tpucc.lowering.tileprogram import TileProgram
from tpucc.lowering.workload import Step
from tpucc.target import Target

SPILL_SHARE = 4
"""When no split fits, a buffer may take this fraction of the unified buffer: the three of a vector instruction, and room to move."""
JOINED_SHARES = (0.75, 0.25)
"""Shares of the unified buffer that steps for the whole batch may take: the rest is for the parts before them, and lost between buffers."""


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """The instructions of a plan under one split, on the buffers of `layout`; `groups` are the rows of the accumulator groups. `notes` say
    how and why it is split, `division` how."""

    split: Split
    layout: Layout
    instructions: Records
    groups: tuple[int, ...]
    notes: tuple[str, ...]
    division: Division | None

    def live_sum(self) -> int:
        """Rows of the unified buffer that no placement can do without."""
        buffers = self.layout.buffers
        return largest_live_sum(*live_ranges(self.instructions, len(buffers)), buffer_rows(buffers))

    def has_room(self) -> bool:
        """Whether the operands of each instruction fit the unified buffer by themselves."""
        rows = rows_at_once(self.instructions, self.layout.buffers)
        return int(rows.max(initial=0)) <= self.layout.plan.target.unified_buffer_rows


def choose_splits(plan: Plan, parts: int | None) -> Iterator[Draft]:
    """Drafts of the plan's instructions: the batch in `parts` parts, or else in the fewest that fit; then others that may be faster, for
    fewer steps are done in parts, or parts hide transfers.

    Raises `UsageError` E0520 when `parts` is more than the batch allows, and `LimitError` E0624 where it would have more instructions
    than the plan may in those parts, or in one piece, which is made to see whether it fits. Others with so many aren't made.
    """
    if parts is not None:
        _require_splittable(plan, parts)
        yield _countable_draft(plan, Split(even(plan.sharding.batch, parts)))
        return
    whole = _countable_draft(plan, Split((plan.sharding.batch,)))
    rows = whole.live_sum()
    if rows > plan.target.unified_buffer_rows and plan.sharding.batch > 1:
        yield from _in_fewest_parts(plan, rows)
        return
    yield whole
    for split in overlapping_splits(plan):
        yield from _fitting(plan, split, _overlap_note(split))


def _in_fewest_parts(plan: Plan, rows: int) -> Iterator[Draft]:
    """All steps in the fewest parts that fit; then only the first ones, and the rest for the whole batch, where that fits."""
    every = len(plan.steps)
    for parted in dict.fromkeys((every, *(_parted_steps(plan, share) for share in JOINED_SHARES))):
        split = Split(even(plan.sharding.batch, _fewest_parts(plan, parted)), parted=parted)
        if parted == every:
            yield _countable_draft(plan, split, _note(plan, rows, split))
        else:
            yield from _fitting(plan, split, _note(plan, rows, split))


def _parted_steps(plan: Plan, share: float) -> int:
    """The fewest steps to do in parts, so that what the others have alive for the whole batch takes no more than a share of the unified
    buffer. A program with steps of the host does all in parts."""
    if plan.segments > 1:
        return len(plan.steps)
    mxu, width, room = plan.target.mxu, plan.format.bytes_per_value, share * plan.target.unified_buffer_rows
    sizes = {tensor: tensor.rows * tensor.blocks(mxu) * width for tensor in plan.owners}
    return bisect_left(range(len(plan.steps)), True, key=lambda parted: live_rows(plan.steps[parted:], sizes) <= room)


def _countable_draft(plan: Plan, split: Split, *notes: str) -> Draft:
    """A draft that the plan has to have. Raises `LimitError` E0624, before it is made, where it takes too many instructions."""
    require_countable(plan, split)
    return _draft(plan, split, *notes)


def _fitting(plan: Plan, split: Split, note: str) -> Iterator[Draft]:
    """A draft that the plan can do without: none where it takes too many instructions, or doesn't fit the unified buffer."""
    if is_countable(plan, split):
        draft = _draft(plan, split, note)
        if draft.live_sum() <= plan.target.unified_buffer_rows:
            yield draft


def _draft(plan: Plan, split: Split, *notes: str) -> Draft:
    """The instructions of all steps for all parts. Steps on tensors that all items share run once, with part 0.

    The host works on the whole batch: a segment does all parts before the next one begins.
    """
    layout = Layout(plan, split)
    emitter = Emitter(layout)
    for segment in range(plan.segments):
        if segment > 0:
            emitter.layer = plan.host_layer(segment - 1)
            emitter.interrupt(segment - 1)
        for part, number, step in _order(plan, split, segment):
            if split.ahead:
                _read_inputs(layout, emitter, part)
                _read_inputs(layout, emitter, part + 1)
            emitter.layer = plan.layer_of(number)
            if not split.is_parted(number) or not plan.sharding.splits(step.result):
                if part == 0:
                    emit_step(step, 0, layout, emitter)
                continue
            last = part == len(split.sizes) - 1 or layout.is_split(step.result)
            items = plan.sharding.part(step, split.sizes[part], split.first(part), layout.joined)
            emit_step(items, part, layout, emitter, complete=last)
    return Draft(split, layout, emitter.instructions(), tuple(emitter.groups), notes, division_of(plan, split))


def division_of(plan: Plan, split: Split) -> Division | None:
    """What the program keeps of a split; nothing of a batch in one piece."""
    if len(split.sizes) == 1:
        return None
    together = plan.steps[len(plan.steps) if split.parted is None else split.parted :]
    order = "alternating" if split.lead is not None else "ahead" if split.ahead else "in-turn"
    return Division(len(split.sizes), max(split.sizes), order, together[0].name if together else "")


def _order(plan: Plan, split: Split, segment: int) -> Iterator[tuple[int, int, Step]]:
    """Part, number and step of everything that a segment does."""
    steps = plan.steps_of(segment)
    if split.lead is None:
        yield from ((part, *step) for part in range(len(split.sizes)) for step in steps[: split.parted])
        yield from ((0, *step) for step in (() if split.parted is None else steps[split.parted :]))
        return
    for place in range(len(steps) + split.lead):
        if place < len(steps):
            yield 0, *steps[place]
        if place >= split.lead:
            yield 1, *steps[place - split.lead]


def _read_inputs(layout: Layout, emitter: Emitter, part: int) -> None:
    """Reads the inputs of a part, if there is one."""
    if part < len(layout.splits):
        for tensor in layout.plan.inputs:
            if tensor in layout.plan.owners:
                for buffer in layout.blocks(tensor, part):
                    emitter.require(buffer)


def _require_splittable(plan: Plan, parts: int) -> None:
    if parts == 1:
        return
    batch = plan.sharding.batch
    if batch == 1:
        raise UsageError(Diagnostic("E0520", f"the batch can't be split into {parts} parts: the model computes no items one by one"))
    if not 1 <= parts <= batch:
        raise UsageError(Diagnostic("E0520", f"a batch of {batch:,} can't be split into {parts} parts"))


def _fewest_parts(plan: Plan, parted: int) -> int:
    """The fewest parts of the first `parted` steps that fit; when not even single items do, as few as leave room for spilling. The whole
    batch doesn't fit."""
    batch = plan.sharding.batch
    if not _fits(plan, batch, parted):
        return _parts_to_spill(plan, parted)
    low = high = 2
    while not _fits(plan, high, parted):
        low, high = high + 1, min(2 * high, batch)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(plan, middle, parted) else (middle + 1, high)
    return low


def _parts_to_spill(plan: Plan, parted: int) -> int:
    """As few parts as leave room for spilling, or as give each instruction room for its operands; single items when none do."""
    room, batch = plan.target.unified_buffer_rows, plan.sharding.batch
    item = max(plan.sharding.rows(tensor, 1) for tensor in plan.owners) * plan.format.bytes_per_value
    first = min(batch, -(-batch * item // max(1, room // SPILL_SHARE)))
    if first == batch or _sample(plan, first, parted).has_room():
        return first
    return bisect_left(range(batch), True, first + 1, key=lambda parts: _sample(plan, parts, parted).has_room())


def _fits(plan: Plan, parts: int, parted: int) -> bool:
    """Whether that many parts fit the unified buffer."""
    return _sample(plan, parts, parted).live_sum() <= plan.target.unified_buffer_rows


def _sample(plan: Plan, parts: int, parted: int) -> Draft:
    """A draft of first, middle and last part, enough to measure the peak of a batch in `parts` parts.

    The built-in lowering makes it, even if a stage replaces that: the number of parts doesn't depend on a layer's instructions.
    """
    largest = -(-plan.sharding.batch // parts)
    return _draft(replace(plan, lowerers={}), Split((largest,) * min(parts, 3), parted=parted))


def _note(plan: Plan, rows: int, split: Split) -> str:
    parts, size, room = len(split.sizes), max(split.sizes), plan.target.unified_buffer_rows
    why = f"in one piece it needs {rows:,} rows of a unified buffer of {room:,}"
    joined = len(plan.steps) - (split.parted or 0)
    until = f" until {plan.steps[-joined].name}, which is done for all" if joined else ""
    return f"split the batch into {parts:,} parts of at most {size:,}{until}: {why}"


def _overlap_note(split: Split) -> str:
    return "split the batch in two" if split.lead is not None else f"split the batch into {len(split.sizes):,} parts"


@dataclass(frozen=True, slots=True, eq=False)
class Drafts:
    """The ways to compute a device graph, all with the same results: the first, then others that may be faster, made one at a time."""

    plan: Plan
    first: Draft
    others: Iterator[Draft]

    def shortage(self) -> LimitError | None:
        """E0621 where the operands of one instruction of the first draft don't fit the unified buffer. All other drafts fit."""
        return shortage_of(_tile_program(self.plan, self.first))

    def programs(self) -> Iterator[TileProgram]:
        """The tile program of each draft, which must have room."""
        for draft in chain((self.first,), self.others):
            yield replace(_tile_program(self.plan, draft), constants=draft.layout.constants())


def drafts_of(
    device: Graph,
    target: Target,
    *,
    parts: int | None = None,
    segments: Mapping[str, int] = NO_SEGMENTS,
    lowerers: Mapping[str, Lowerer] = BUILT_IN,
    most: int = UNLIMITED,
) -> Drafts:
    """The drafts of a device graph: layers in order, cut into tiles and chunks, on virtual buffers.

    `device` has `input` (i8) and `constant` nodes, layers, and views (`reshape`, `slice`, `transpose`) that leave the last axis alone;
    sizes are arbitrary, from 1 up. Between two of the `segments`, which are a partition's, the host takes a step. The batch is split into
    `parts` parts, or into as few as make the program fit the unified buffer; see `overlap` for others that may be faster. `lowerers` write
    the instructions of layers of a kind (`fc`, `conv`) in place of the built-in lowering.

    Raises `LimitError`: E0622 when the weights don't fit weight memory, E0624 when the first program would have more than `most`
    instructions, or, unless `parts` is given, the batch in one piece; and `UsageError` E0520 when the batch can't be split into `parts`.
    """
    plan = make_plan(device, target, segments, lowerers, most)
    found = choose_splits(plan, parts)
    return Drafts(plan, next(found), found)


def lowerings(
    device: Graph,
    target: Target,
    *,
    parts: int | None = None,
    segments: Mapping[str, int] = NO_SEGMENTS,
    lowerers: Mapping[str, Lowerer] = BUILT_IN,
    most: int = UNLIMITED,
) -> Iterator[TileProgram]:
    """The tile programs of `drafts_of`. Raises what that raises, and `LimitError` E0621 where the first has no room."""
    drafts = drafts_of(device, target, parts=parts, segments=segments, lowerers=lowerers, most=most)
    if (shortage := drafts.shortage()) is not None:
        raise shortage
    return drafts.programs()


def lower(device: Graph, target: Target, *, parts: int | None = None, segments: Mapping[str, int] = NO_SEGMENTS) -> TileProgram:
    """The first tile program of `lowerings`. Raises what that raises."""
    return next(lowerings(device, target, parts=parts, segments=segments))


def _tile_program(plan: Plan, draft: Draft) -> TileProgram:
    """The tile program of a draft, without its constants, which may take much memory."""
    layout = draft.layout
    return TileProgram(
        name=plan.name,
        source=plan.source,
        target=plan.target,
        instructions=draft.instructions,
        buffers=tuple(layout.buffers),
        groups=draft.groups,
        layers=plan.layers(draft.split),
        tiles=plan.tiles,
        written_tiles=plan.written_tiles,
        blocks=plan.blocks,
        host=tuple(layout.host),
        constants=np.zeros((0, plan.target.mxu), np.int8),
        inputs=layout.inputs,
        outputs=layout.outputs,
        notes=draft.notes,
        division=draft.division,
    )
