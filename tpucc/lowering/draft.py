"""A draft of a tile program: the instructions of a plan, under one split of the batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from tpucc.isa.program import Division
from tpucc.lowering.emitter import Emission, Emitter
from tpucc.lowering.layout import BufferLayout
from tpucc.lowering.liveness import buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.plan import Plan
from tpucc.lowering.room import rows_at_once
from tpucc.lowering.sharding import Split
from tpucc.lowering.steps import LaneByLane, Moving, Product, Region, Step, WrittenProducts
from tpucc.lowering.tiled_product import emit_product
from tpucc.machine.instruction import Records


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """The instructions of a plan under one split, on the buffers of `layout`; `groups` has the rows of each accumulator group. `notes` say
    in words how and why the batch is split; `division` is the split as the program keeps it."""

    split: Split
    layout: BufferLayout
    instructions: Records
    groups: tuple[int, ...]
    notes: tuple[str, ...]
    division: Division | None

    def live_sum(self) -> int:
        """The least number of rows of the unified buffer that any allocation needs: the largest sum of rows alive at one time."""
        buffers = self.layout.buffers
        return largest_live_sum(*live_ranges(self.instructions, len(buffers)), buffer_rows(buffers))

    def has_room(self) -> bool:
        """Whether the operands of each instruction fit the unified buffer by themselves."""
        rows = rows_at_once(self.instructions, self.layout.buffers)
        return int(rows.max(initial=0)) <= self.layout.plan.target.unified_buffer_rows


def make_draft(plan: Plan, split: Split, *notes: str) -> Draft:
    """The instructions of all steps for all parts. Steps on tensors that all items share run once, with part 0.

    The host works on the whole batch: a segment does all parts before the next one begins.
    """
    layout = BufferLayout(plan, split)
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
            if not split.is_parted(number) or not plan.sharding.has_items(step.result):
                if part == 0:
                    emit_step(Emission(step, 0, layout, emitter))
                continue
            last = part == len(split.sizes) - 1 or layout.is_split(step.result)
            items = plan.sharding.part(step, split.sizes[part], split.first(part), layout.joined)
            emit_step(Emission(items, part, layout, emitter, is_last=last))
    return Draft(split, layout, emitter.instructions(), tuple(emitter.groups), notes, division_of(plan, split))


def division_of(plan: Plan, split: Split) -> Division | None:
    """The split as the program keeps it; None for a batch in one piece."""
    if len(split.sizes) == 1:
        return None
    together = plan.steps[len(plan.steps) if split.parted is None else split.parted :]
    order = "alternating" if split.lead is not None else "ahead" if split.ahead else "in-turn"
    return Division(len(split.sizes), max(split.sizes), order, together[0].name if together else "")


def _order(plan: Plan, split: Split, segment: int) -> Iterator[tuple[int, int, Step]]:
    """The parts and steps of a segment in the order of their instructions: the part, the step's number, the step."""
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


def _read_inputs(layout: BufferLayout, emitter: Emitter, part: int) -> None:
    """Reads the inputs of a part of the batch, if the batch has this part."""
    if part < len(layout.part_sizes):
        for tensor in layout.plan.inputs:
            if tensor in layout.plan.owners:
                for buffer in layout.column_blocks(tensor, part):
                    emitter.require(buffer)


def emit_step(at: Emission) -> None:
    """Writes the instructions of a step: the rows of its result's border, then its work.

    The activation unit fills borders. So the matrix unit's first operand is read from the host before the rows that borders are copied
    from.
    """
    step, work = at.step, at.step.work
    if isinstance(work, Product) and work.levels:
        at.buffer(work.levels[0].x, work.levels[0].column_block)
    _copy(step.borders, at)
    match work:
        case Product():
            at.layout.plan.lowerers.get(work.kind, emit_product)(work, at)
        case WrittenProducts():
            _emit_written(work, at)
        case Moving():
            _copy(work.regions, at)
            for y in at.results:
                at.complete(y) if work.regions else at.emitter.require(y)
        case LaneByLane():
            for n, y in enumerate(at.results):
                for region in work.regions:
                    at.compute(region, n)
                at.complete(y)
        case _:
            assert_never(work)


def _copy(regions: Iterable[Region], at: Emission) -> None:
    """Copies region after region, all column blocks of each."""
    for region in regions:
        for n in range(len(at.results)):
            at.compute(region, n)


def _emit_written(work: WrittenProducts, at: Emission) -> None:
    """Writes all tiles to weight memory, then multiplies part after part. The result is complete after the last part."""
    for write in work.writes:
        at.emitter.write_tile(write)
    for part in work.parts:
        emit_step(at.of(part, is_last=part is work.parts[-1]))
