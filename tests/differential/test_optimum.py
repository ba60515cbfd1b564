"""How far the compiler's blocking is from the best of all cuts and orders, on small cases: `docs/optimum.md` has the table.

Every variant goes through the real scheduler and is timed. The search shares nothing with the compiler's own: it takes the instructions
of a lowered program apart and puts them together again (`tests/support/loop_orders.py`). `python -m tests.differential.test_optimum`
prints the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import msgspec
import pytest

from tests.support.cases import one_of
from tests.support.device_graphs import TINY, V1, assert_computes, chain
from tests.support.loop_orders import Chunk, Layer, Order, all_cuts, even_cuts, every_order, layers_of, orders, scheduled
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.lowering.lower import lower
from tpucc.schedule import schedule
from tpucc.sim.timing import time_program
from tpucc.target import Target

ROOMY = msgspec.structs.replace(TINY, unified_buffer_rows=400)
QUICK = msgspec.structs.replace(ROOMY, weight_bandwidth=16e6, host_bandwidth=64e6)
"""Fetches a tile in a cycle, so that the matrix unit is what limits."""
INNER = msgspec.structs.replace(V1, host_bandwidth=1e13, host_latency_seconds=0.0)
"""TPU v1 in the middle of a network, where nothing waits for the host."""
PRIME = msgspec.structs.replace(INNER, weight_bandwidth=170e9)
"""With five times the weight bandwidth, about what the paper's section 7 gives TPU'."""


@dataclass(frozen=True)
class Case:
    """Dense layers of `widths` on `rows` rows; up to `chunks` even chunks are tried; `bound` is how far off the compiler may be."""

    title: str
    target: Target
    rows: int
    widths: tuple[int, ...]
    chunks: int
    bound: float


CASES = (
    Case("TPU v1, weight bound", INNER, 200, (512, 512), 8, 0.03),
    Case("TPU v1, chunk by chunk", INNER, 3000, (512, 512), 6, 0.02),
    Case("TPU v1, weights reloaded", INNER, 5000, (512, 512), 6, 0.01),
    Case("TPU v1, one tile deep", INNER, 9000, (256, 512), 8, 0.02),
    Case("TPU v1, two layers", INNER, 200, (512, 512, 256), 2, 0.02),
    Case("TPU v1, 170 GB/s", PRIME, 600, (512, 512), 8, 0.08),
    Case("TPU v1, 170 GB/s, reloaded", PRIME, 5000, (512, 512), 6, 0.01),
    Case("4×4, weight bound", ROOMY, 6, (8, 8), 6, 0.10),
    Case("4×4, weights reloaded", ROOMY, 24, (12, 8), 6, 0.01),
    Case("4×4, two layers", ROOMY, 8, (8, 8, 4), 2, 0.01),
    Case("4×4, quick weights", QUICK, 6, (8, 8), 6, 0.15),
    Case("4×4, quick weights, reloaded", QUICK, 24, (12, 8), 6, 0.05),
)


@dataclass(frozen=True)
class Found:
    """Cycles of the compiler's program, and of the best variant that fits; how many do."""

    compiled: int
    best: int
    tried: int
    program: Program

    @property
    def excess(self) -> float:
        return self.compiled / self.best - 1


@cache
def search(case: Case) -> Found:
    """The best of all loop nests over even cuts; of the compiler's own cut too, whatever that is."""
    tiles = lower(chain(case.rows, *case.widths), case.target)
    layers = layers_of(tiles)
    choices = [orders(layer, [*even_cuts(layer.rows, case.chunks), layer.cut]) for layer in layers]
    programs = [program for chosen in product(*choices) if (program := scheduled(tiles, chosen)) is not None]
    times = [time_program(program).makespan for program in programs]
    best = min(times)
    return Found(time_program(schedule(tiles)).makespan, best, len(times), programs[times.index(best)])


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("case", one_of(4, CASES), ids=lambda case: case.title)
def test_the_compiler_is_near_the_optimum(case: Case) -> None:
    found = search(case)
    assert 0 <= found.excess <= case.bound


@pytest.mark.long
@pytest.mark.parametrize("case", one_of(4, [case for case in CASES if case.target.mxu == 4]), ids=lambda case: case.title)
def test_the_best_variant_is_a_program(case: Case) -> None:
    """It passes the verifier and computes the same integers: what was searched is legal."""
    program = search(case).program
    assert verify(program) == ()
    assert_computes(chain(case.rows, *case.widths), program)


def best_of(rows: int, widths: tuple[int, ...], target: Target, chosen: Sequence[Order]) -> int:
    tiles = lower(chain(rows, *widths), target)
    return min(time_program(program).makespan for order in chosen if (program := scheduled(tiles, [order])) is not None)


def only_layer(rows: int, widths: tuple[int, ...], target: Target) -> Layer:
    (layer,) = layers_of(lower(chain(rows, *widths), target))
    return layer


@pytest.mark.parametrize(
    ("rows", "widths", "cut"),
    one_of(
        2,
        [
            pytest.param(8, (8, 12), [(0, 8)], marks=pytest.mark.soak),
            (8, (8, 8), [(0, 8)]),
            (12, (8, 4), [(0, 6), (6, 6)]),
            (20, (4, 8), [(0, 10), (10, 10)]),
        ],
    ),
)
def test_no_order_at_all_is_better_than_a_loop_nest(rows: int, widths: tuple[int, int], cut: list[Chunk]) -> None:
    """All 24 orders of four multiplies, in `make soak` all 720 of six: nothing is lost by searching loop nests only."""
    layer = only_layer(rows, widths, QUICK)
    nests = best_of(rows, widths, QUICK, orders(layer, [cut]))
    assert best_of(rows, widths, QUICK, list(every_order(layer, cut))) == nests


def test_uneven_chunks_are_no_better() -> None:
    """All 8 cuts of four rows."""
    layer = only_layer(4, (8, 8), QUICK)
    even = best_of(4, (8, 8), QUICK, orders(layer, even_cuts(4, 4)))
    assert best_of(4, (8, 8), QUICK, orders(layer, all_cuts(4))) == even


def test_the_compiler_s_own_order_is_among_the_variants() -> None:
    """Taken apart and put together again, a program is what it was."""
    for case in CASES:
        tiles = lower(chain(case.rows, *case.widths), case.target)
        own = scheduled(tiles, [layer.order for layer in layers_of(tiles)])
        assert own is not None
        assert (own.instructions == schedule(tiles).instructions).all()


def row(case: Case) -> str:
    """The case's row in the table of the book."""
    found, widths = search(case), "→".join(map(str, case.widths))
    size = f"{case.rows:,} × {widths}"
    return f"| {case.title} | {size} | {found.tried:,} | {found.best:,} | {found.compiled:,} | {100 * found.excess:.1f} % |"


if __name__ == "__main__":
    print("\n".join(map(row, CASES)))
