"""Splitting along the batch, so that a program fits the unified buffer, or is faster.

Every item of a batch is computed alone, so a program may do all layers for some items, then all layers for the next. Where that is for
room, the fewer parts the better, for each fetches the weights again; where it is for speed, see `overlap`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.isa.instructions import Records
from tpucc.lowering.emitter import Emitter
from tpucc.lowering.layout import Layout
from tpucc.lowering.liveness import buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.overlap import Split, even, overlapping_splits
from tpucc.lowering.plan import Plan
from tpucc.lowering.steps import emit_step
from tpucc.lowering.workload import Step

SPILL_SHARE = 4
"""When no split fits, a buffer may take this fraction of the unified buffer: the three of a vector instruction, and room to move."""


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """The instructions of a plan under one split, on the buffers of `layout`; `groups` are the rows of the accumulator groups. `notes` say
    how and why it is split."""

    layout: Layout
    instructions: Records
    groups: tuple[int, ...]
    notes: tuple[str, ...]

    def live_sum(self) -> int:
        """Rows of the unified buffer that no placement can do without."""
        buffers = self.layout.buffers
        return largest_live_sum(*live_ranges(self.instructions, len(buffers)), buffer_rows(buffers))


def choose_splits(plan: Plan, parts: int | None) -> Iterator[Draft]:
    """Drafts of the plan's instructions: the batch in `parts` parts, or else in the fewest that fit; then others that may be faster.

    Raises `UsageError` E0520 when `parts` is more than the batch allows.
    """
    if parts is not None:
        _require_splittable(plan, parts)
        yield _draft(plan, Split(even(plan.sharding.batch, parts)))
        return
    whole = _draft(plan, Split((plan.sharding.batch,)))
    rows = whole.live_sum()
    if rows > plan.target.unified_buffer_rows and plan.sharding.batch > 1:
        yield _in_fewest_parts(plan, rows)
        return
    yield whole
    for split in overlapping_splits(plan):
        draft = _draft(plan, split, _overlap_note(split))
        if draft.live_sum() <= plan.target.unified_buffer_rows:
            yield draft


def _in_fewest_parts(plan: Plan, rows: int) -> Draft:
    count = _fewest_parts(plan)
    return _draft(plan, Split(even(plan.sharding.batch, count)), _note(plan, rows, count))


def _draft(plan: Plan, split: Split, *notes: str) -> Draft:
    """The instructions of all steps for all parts. Steps on tensors that all items share run once, with part 0.

    The host works on the whole batch: a segment does all parts before the next one begins.
    """
    layout = Layout(plan, split.sizes)
    emitter = Emitter(layout)
    for segment in range(plan.segments):
        if segment > 0:
            emitter.interrupt(segment - 1)
        for part, layer, step in _order(plan, split, segment):
            if split.ahead:
                _read_inputs(layout, emitter, part)
                _read_inputs(layout, emitter, part + 1)
            if part == 0 or layout.is_split(step.result):
                emitter.layer = layer
                emit_step(plan.sharding.part(step, split.sizes[part]) if len(split.sizes) > 1 else step, part, layout, emitter)
    return Draft(layout, emitter.instructions(), tuple(emitter.groups), notes)


def _order(plan: Plan, split: Split, segment: int) -> Iterator[tuple[int, int, Step]]:
    """Part, layer and step of everything that a segment does."""
    steps = plan.steps_of(segment)
    if split.lead is None:
        yield from ((part, *step) for part in range(len(split.sizes)) for step in steps)
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


def _fewest_parts(plan: Plan) -> int:
    """The fewest parts that fit; when not even single items do, as few as leave room for spilling. The whole batch doesn't fit."""
    room, batch = plan.target.unified_buffer_rows, plan.sharding.batch
    if not _fits(plan, batch):
        item = max(plan.sharding.rows(tensor, 1) for tensor in plan.owners) * plan.precision.rows
        return min(batch, -(-batch * item // max(1, room // SPILL_SHARE)))
    low = high = 2
    while not _fits(plan, high):
        low, high = high + 1, min(2 * high, batch)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(plan, middle) else (middle + 1, high)
    return low


def _fits(plan: Plan, parts: int) -> bool:
    """Whether that many parts fit the unified buffer. Three parts of the largest size tell: a first one, a middle one and a last one."""
    largest = -(-plan.sharding.batch // parts)
    return _draft(plan, Split((largest,) * min(parts, 3))).live_sum() <= plan.target.unified_buffer_rows


def _note(plan: Plan, rows: int, parts: int) -> str:
    room = plan.target.unified_buffer_rows
    size = -(-plan.sharding.batch // parts)
    why = f"in one piece it needs {rows:,} rows of a unified buffer of {room:,}"
    return f"the batch is split into {parts:,} parts of at most {size:,}: {why}"


def _overlap_note(split: Split) -> str:
    parts, size = len(split.sizes), max(split.sizes)
    if split.lead is not None:
        return f"the batch is computed in two halves of at most {size:,} that take turns, to hide activations and transfers"
    return f"the batch is computed in {parts:,} parts of at most {size:,} one after the other, to hide transfers"
