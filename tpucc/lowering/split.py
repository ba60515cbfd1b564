"""Splitting along the batch, so that a program fits the unified buffer.

Every item of a batch is computed alone, so a program may do all layers for some items, then all layers for the next. The fewer parts the
better, for each fetches the weights again.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.isa.instructions import Records
from tpucc.lowering.emitter import Emitter
from tpucc.lowering.layout import Layout
from tpucc.lowering.liveness import buffer_rows, largest_live_sum, live_ranges
from tpucc.lowering.plan import Plan
from tpucc.lowering.steps import emit_step

SPILL_SHARE = 4
"""When no split fits, a buffer may take this fraction of the unified buffer: the three of a vector instruction, and room to move."""


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """The instructions of a plan under one split, on the buffers of `layout`; `groups` are the rows of the accumulator groups."""

    layout: Layout
    instructions: Records
    groups: tuple[int, ...]

    def live_sum(self) -> int:
        """Rows of the unified buffer that no placement can do without."""
        buffers = self.layout.buffers
        return largest_live_sum(*live_ranges(self.instructions, len(buffers)), buffer_rows(buffers))


def choose_split(plan: Plan, parts: int | None) -> tuple[Draft, tuple[str, ...]]:
    """The plan's instructions, the batch in `parts` parts or else in the fewest that fit, and a note when it is split.

    Raises `UsageError` E0520 when `parts` is more than the batch allows.
    """
    if parts is not None:
        _require_splittable(plan, parts)
        return _draft(plan, _even(plan.sharding.batch, parts)), ()
    whole = _draft(plan, (plan.sharding.batch,))
    rows = whole.live_sum()
    if rows <= plan.target.unified_buffer_rows or plan.sharding.batch == 1:
        return whole, ()
    count = _fewest_parts(plan)
    return (_draft(plan, _even(plan.sharding.batch, count)), (_note(plan, rows, count),)) if count > 1 else (whole, ())


def _draft(plan: Plan, splits: tuple[int, ...]) -> Draft:
    """All steps for part 0, then for part 1, and so on; steps on tensors that all items share run once, with part 0.

    The host works on the whole batch: a segment does all parts before the next one begins.
    """
    layout = Layout(plan, splits)
    emitter = Emitter(layout)
    for segment in range(plan.segments):
        if segment > 0:
            emitter.interrupt(segment - 1)
        for part in range(len(splits)):
            for layer, step in plan.steps_of(segment):
                if part == 0 or layout.is_split(step.result):
                    emitter.layer = layer
                    emit_step(plan.sharding.part(step, splits[part]) if len(splits) > 1 else step, part, layout, emitter)
    return Draft(layout, emitter.instructions(), tuple(emitter.groups))


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
    return _draft(plan, (largest,) * min(parts, 3)).live_sum() <= plan.target.unified_buffer_rows


def _even(rows: int, parts: int) -> tuple[int, ...]:
    size, larger = divmod(rows, parts)
    return tuple(size + (part < larger) for part in range(parts))


def _note(plan: Plan, rows: int, parts: int) -> str:
    room = plan.target.unified_buffer_rows
    size = -(-plan.sharding.batch // parts)
    why = f"in one piece it needs {rows:,} rows of a unified buffer of {room:,}"
    return f"the batch is split into {parts:,} parts of at most {size:,}: {why}"
