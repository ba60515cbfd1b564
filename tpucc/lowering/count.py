"""Counts the instructions of a split of a plan before any is made: narrow matrix units and few accumulators can take millions of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tpucc.diagnostics import Diagnostic, LimitError, counted
from tpucc.lowering.plan import Plan
from tpucc.lowering.sharding import Split
from tpucc.lowering.steps import Product, Region, Step, product_nest
from tpucc.lowering.walks import nest, part_walk_count, walk_count
from tpucc.target import Target


def require_countable(plan: Plan, split: Split) -> None:
    """Raises `LimitError` E0624 where a split takes more instructions than the plan may have; it shows the step that takes the most."""
    counts = step_counts(plan, split)
    if sum(counts) > plan.most:
        raise _too_many(plan, counts)


def is_countable(plan: Plan, split: Split) -> bool:
    """Whether a split takes no more instructions than the plan may have."""
    return sum(step_counts(plan, split)) <= plan.most


def step_counts(plan: Plan, split: Split) -> list[int]:
    """For each step the instructions that it takes, in all parts together.

    Host transfers, changes of the parameter block and interrupts aren't counted. Replaced lowerings count as the least that they can take.
    """
    sizes = Counter(split.sizes)
    return [
        sum(times * _count(plan, plan.sharding.part(step, size)) for size, times in sizes.items())
        if split.is_parted(number) and plan.sharding.has_items(step.result)
        else _count(plan, step)
        for number, step in enumerate(plan.steps)
    ]


def _count(plan: Plan, step: Step) -> int:
    """The number of instructions of a step, or of its part of a batch."""
    lane_by_lane = step.result.column_blocks(plan.target.mxu) * _walks((*step.borders, *step.work.regions))
    return lane_by_lane + len(step.work.writes) + sum(_product(plan, *product) for product in step.products)


def _product(plan: Plan, step: Step, work: Product) -> int:
    """The instructions of a product: for each piece of the rows one multiply a tile, and one `activate` a column block.

    A piece has at most as many rows as there are accumulators. Where this bound exceeds the limit, or a stage of the user's lowers the
    product, the bound is the answer.
    """
    each = work.multiplies + len(work.parameter_blocks)
    least = each * -(-step.y.rows // plan.target.accumulator_rows)
    if least > plan.most or work.kind in plan.lowerers:
        return least
    loops = product_nest(step).loops
    return each * sum(part_walk_count(loops, *chunk) for chunks in plan.blocking(step, work).groups for chunk in chunks)


def _walks(regions: Iterable[Region]) -> int:
    """The number of instructions for one column block of the regions."""
    return sum(walk_count(nest(region.y.shape, tuple(access.steps for access in region.walked))) for region in regions)


def _too_many(plan: Plan, counts: list[int]) -> LimitError:
    """E0624 at the step with the most instructions."""
    largest = max(counts)
    step = plan.steps[counts.index(largest)]
    message = (
        f"the program takes {sum(counts):,} instructions or more; at most {plan.most:,} are made, and {step.name} alone takes {largest:,}"
    )
    return LimitError(Diagnostic("E0624", message, step.origin.trail(), _why(step, largest, plan.target)))


def _why(step: Step, instructions: int, target: Target) -> tuple[str, ...]:
    """Help: the reason for the number of instructions of a step, and two ways to fewer, the more effective way first."""
    mxu, tiles = target.mxu, sum(work.multiplies for _, work in step.products)
    what = f"tile of {mxu}×{mxu} weights", f"tiles of {mxu}×{mxu} weights"
    pieces = tiles or step.result.column_blocks(mxu)
    each = -(-instructions // pieces)
    found = counted(pieces, *what) if tiles else f"{counted(pieces, 'block')} of {counted(mxu, 'column')}"
    why = f"it has {found}, each for about {counted(each, 'instruction')}"
    wider = f"a wider matrix unit has fewer tiles: mxu is {mxu}, and at twice that there is about a fourth of them"
    fewer = f"a smaller batch has fewer instructions a tile, and so may more accumulators: accumulator_rows is {target.accumulator_rows:,}"
    return (why, wider, fewer) if pieces >= each else (why, fewer, wider)
