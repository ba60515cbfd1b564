"""The ways to split the batch: into as few parts as fit the unified buffer, or into others that may be faster.

Every item of a batch is computed alone, so a program may do all layers for some items, then all layers for the next. Where that is for
room, the fewer parts the better, for each fetches the weights again. Where it is for speed, transfers and activations of one part overlap
with products of another: a program that does all layers for the whole batch waits for the last row of its inputs before it begins, for the
last activation of each layer before the next layer begins, and for the last row of its outputs at the end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, count

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.lowering.cost import costs_on
from tpucc.lowering.count import is_countable, require_countable
from tpucc.lowering.draft import Draft, make_draft
from tpucc.lowering.order import live_rows
from tpucc.lowering.plan import Plan
from tpucc.lowering.sharding import Split, even
from tpucc.lowering.steps import Step
from tpucc.lowering.tensors import Tensor

SPILL_SHARE = 4
"""When no split fits, a buffer may take this fraction of the unified buffer: the three of a vector instruction, and room to move."""
TURNS = 8
"""Every `TURNS`-th try halves the interval of the numbers of parts that are left, so that the search ends."""
JOINED_SHARES = (0.75, 0.25)
"""Shares of the unified buffer that steps for the whole batch may take: the rest is for the parts before them, and lost between buffers."""


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
    """The draft of all steps in the fewest parts that fit; then the drafts of only the first steps in parts, and the others for the whole
    batch, where these fit."""
    every, parts = len(plan.steps), plan.sharding.batch
    for parted in dict.fromkeys((every, *(_parted_steps(plan, share) for share in JOINED_SHARES))):
        parts = _fewest_parts(plan, parted, parts)
        split = Split(even(plan.sharding.batch, parts), parted=parted)
        if parted == every:
            yield _countable_draft(plan, split, *_notes(plan, rows, split))
        else:
            yield from _fitting(plan, split, *_notes(plan, rows, split))


def _parted_steps(plan: Plan, share: float) -> int:
    """The fewest steps to run in parts, so that the tensors of the other steps take no more than a share of the unified buffer for the
    whole batch. All steps run in parts where the host has steps between them."""
    if plan.segments > 1:
        return len(plan.steps)
    mxu, width, room = plan.target.mxu, plan.format.bytes_per_value, share * plan.target.unified_buffer_rows
    sizes = {tensor: tensor.rows * tensor.column_blocks(mxu) * width for tensor in plan.owners}
    return bisect_left(range(len(plan.steps)), True, key=lambda parted: live_rows(plan.steps[parted:], sizes) <= room)


def _countable_draft(plan: Plan, split: Split, *notes: str) -> Draft:
    """The draft of a split. Raises `LimitError` E0624, before the draft is made, where it takes too many instructions."""
    require_countable(plan, split)
    return make_draft(plan, split, *notes)


def _fitting(plan: Plan, split: Split, *notes: str) -> Iterator[Draft]:
    """The draft of a split, unless it takes too many instructions or doesn't fit the unified buffer."""
    if is_countable(plan, split):
        draft = make_draft(plan, split, *notes)
        if draft.live_sum() <= plan.target.unified_buffer_rows:
            yield draft


def _require_splittable(plan: Plan, parts: int) -> None:
    if parts == 1:
        return
    batch = plan.sharding.batch
    if batch == 1:
        raise UsageError(Diagnostic("E0520", f"the batch can't be split into {parts} parts: the model computes no items one by one"))
    if not 1 <= parts <= batch:
        raise UsageError(Diagnostic("E0520", f"a batch of {batch:,} can't be split into {parts} parts"))


def _fewest_parts(plan: Plan, parted: int, tried: int) -> int:
    """The fewest parts of the first `parted` steps that fit; where not even single items fit, the fewest that leave room for spilling. The
    whole batch must not fit.

    The rows grow almost linearly with the items of a part, so that two tries say which number of parts to try next. The first try is
    `tried`.
    """
    batch, room = plan.sharding.batch, plan.target.unified_buffer_rows
    low, high, known = 2, batch + 1, (0, 0)
    for number in count(1):
        items, rows = -(-batch // tried), _sample(plan, tried, parted).live_sum()
        low, high = (low, tried) if rows <= room else (tried + 1, high)
        if low >= high:
            break
        by, more = (items, rows) if rows == known[1] else (items - known[0], rows - known[1])
        best, known = items + (room - rows) * by // more, (items, rows)
        tried = (low + high) // 2 if number % TURNS == 0 else min(max(low, -(-batch // max(1, best))), high - 1)
    return low if low <= batch else _parts_to_spill(plan, parted)


def _parts_to_spill(plan: Plan, parted: int) -> int:
    """The fewest parts that leave room for spilling, or in which the operands of each instruction fit; single items where no number
    does."""
    room, batch = plan.target.unified_buffer_rows, plan.sharding.batch
    item = max(plan.sharding.rows(tensor, 1) for tensor in plan.owners) * plan.format.bytes_per_value
    first = min(batch, -(-batch * item // max(1, room // SPILL_SHARE)))
    if first == batch or _sample(plan, first, parted).has_room():
        return first
    return bisect_left(range(batch), True, first + 1, key=lambda parts: _sample(plan, parts, parted).has_room())


def _sample(plan: Plan, parts: int, parted: int) -> Draft:
    """A draft of the first, a middle and the last part: enough to measure the peak of a batch in `parts` parts.

    The built-in lowering makes it, even where the user's functions lower layers: the number of parts doesn't depend on a layer's
    instructions.
    """
    largest = -(-plan.sharding.batch // parts)
    return make_draft(replace(plan, lowerers={}), Split((largest,) * min(parts, 3), parted=parted))


def _notes(plan: Plan, rows: int, split: Split) -> tuple[str, ...]:
    """How the batch is split, and why; nothing where it stays whole, and rows are spilled."""
    parts, size, room = len(split.sizes), max(split.sizes), plan.target.unified_buffer_rows
    if parts == 1:
        return ()
    why = f"in one piece it needs {rows:,} rows of a unified buffer of {room:,}"
    joined = len(plan.steps) - (split.parted or 0)
    until = f" until {plan.steps[-joined].name}, which is done for all" if joined else ""
    return (f"split the batch into {parts:,} parts of at most {size:,}{until}: {why}",)


def _overlap_note(split: Split) -> str:
    return "split the batch in two" if split.lead is not None else f"split the batch into {len(split.sizes):,} parts"


def overlapping_splits(plan: Plan) -> list[Split]:
    """The splits that may be faster than the whole batch: two halves in turn, and the best number of parts that follow each other.

    In two halves that take turns step by step, the matrix unit works on one while the other is activated; the first half leads by as many
    steps as transfers take. In parts that follow each other, the next one's inputs arrive meanwhile. Every part fetches the weights again.
    So there are none where fetching them once more takes as long as all else, by an estimate, or where steps of the host wait for all
    items. Which one is fastest, if any, only the clock can tell.
    """
    batch = plan.sharding.batch
    if batch == 1 or plan.segments > 1:
        return []
    whole = _Estimate(plan, batch)
    limit = min(batch, (whole.inputs + whole.work + whole.outputs) // max(1, whole.fetches))
    if limit < 2:
        return []
    lead = _Estimate(plan, -(-batch // 2)).lead
    counts = (1 << power for power in range(1, limit.bit_length()))
    count = min(counts, key=lambda count: _Estimate(plan, -(-batch // count)).following(count))
    halves = even(batch, 2)
    return [*(Split(halves, lead=steps) for steps in sorted({0, lead})), Split(even(batch, count), ahead=True)]


class _Estimate:
    """The estimated cycles of a part of `items` items: of its transfers in and out, of its work between them, and of the fetches in its
    work."""

    def __init__(self, plan: Plan, items: int) -> None:
        self._plan, self._costs = plan, costs_on(plan.target)
        self.fetches = 0
        sharding = plan.sharding
        steps = [sharding.part(step, items) if items < sharding.batch else step for step in plan.steps]
        self._done = [*accumulate(map(self._work, steps))]
        self.work = self._done[-1] if steps else 0
        """The products, and the activation unit's own work."""
        self.inputs = sum(self._transfer(tensor, items) for tensor in plan.inputs)
        self.outputs = sum(self._transfer(tensor, items) for _, _, tensor in plan.outputs)

    @property
    def lead(self) -> int:
        """The steps by which the first half should be ahead, so that the second half's inputs arrive and the first half's outputs leave
        meanwhile."""
        done = self._done
        arriving, leaving = bisect_left(done, self.inputs), len(done) - bisect_right(done, self.work - self.outputs)
        return min(max(arriving, leaving), len(done) // 3)

    def following(self, count: int) -> int:
        """The cycles of `count` parts one after the other: each takes as long as its work, or as the transfers beside its work."""
        return self.inputs + (count - 1) * max(self.work, self.inputs + self.outputs) + self.work + self.outputs

    def _work(self, step: Step) -> int:
        plan, costs, products = self._plan, self._costs, step.products
        self.fetches += sum(work.multiplies for _, work in products) * costs.fetch
        rows = sum(region.y.rows * region.pixels for region in step.work.regions)
        lane_by_lane = rows * step.result.column_blocks(plan.target.mxu) * plan.format.bytes_per_value * costs.vector
        return sum(plan.blocking(part, work).cycles for part, work in products) + lane_by_lane

    def _transfer(self, tensor: Tensor, items: int) -> int:
        plan = self._plan
        rows = plan.sharding.rows(tensor, items) if items < plan.sharding.batch else tensor.rows
        return self._costs.transfer(rows * tensor.column_blocks(plan.target.mxu) * plan.format.bytes_per_value)
