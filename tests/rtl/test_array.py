"""The element, the array and the accumulators: against integers, and register by register against `tpucc.systolic`."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.systolic import NONE, Multiply, Tile, simulate

pytestmark = pytest.mark.annex


def test_an_element_adds_the_product_to_the_sum_from_above(rtl: ModuleType) -> None:
    """The switch takes the weight of the shadow in the cycle in which the activation arrives."""
    element = rtl.unit("element")
    element.step(above_weight=-7, above_row=1)
    element.step(left_x=100, left_switch=1, sum_above=5)
    assert rtl.signed(element.step(left_x=-128, sum_above=-1000)["sum"], 32) == 100 * -7 + 5
    assert rtl.signed(element.step(left_x=255)["sum"], 32) == -128 * -7 - 1000
    assert rtl.signed(element.step()["sum"], 32) == 255 * -7


def test_a_weight_stays_with_its_row_and_others_pass(rtl: ModuleType) -> None:
    """An element of row 0 takes a weight for any row, and gives it on; nothing moves while none arrives."""
    element = rtl.unit("element")
    for row in (4, 3, 2, 1):
        element.step(above_weight=row, above_row=row)
    for _ in range(3):
        found = element.step(above_weight=99)
        assert (found["down_weight"], found["down_row"]) == (1, 1)


def test_without_the_switch_the_weight_in_use_stays(rtl: ModuleType) -> None:
    element = rtl.unit("element")
    element.step(above_weight=3, above_row=1)
    element.step(left_x=1, left_switch=1)
    element.step(above_weight=100, above_row=1)
    element.step(left_x=10)
    found = element.step()
    assert (found["sum"], found["right_x"]) == (30, 10)


def work(seed: int, lanes: int) -> list[Multiply]:
    random = np.random.default_rng(seed)
    tiles = [Tile(random.integers(-128, 128, (lanes, lanes)), int(random.integers(0, 30))) for _ in range(4)]
    counts = random.integers(1, 2 * lanes, 8)
    return [Multiply(random.integers(-128, 256, (m, lanes)), None if i % 2 else tiles[i // 2]) for i, m in enumerate(counts)]


@each({f"{lanes} lanes, seed {seed}": (lanes, seed) for lanes, seed in ((2, 0), (4, 1), (4, 2))})
def test_every_register_is_the_systolic_simulator_s(lanes: int, seed: int, rtl: ModuleType) -> None:
    from tpucc.cosimulation.waves import entering

    multiplies, before = work(seed, lanes), NONE
    array = rtl.unit("array", shape=replace(rtl.SHAPE, lanes=lanes))
    for cycle in simulate(multiplies, rows=lanes, columns=lanes):
        began = cycle.multiply not in (NONE, before)
        array.step(**entering(cycle, switch=began and multiplies[cycle.multiply].tile is not None))
        for name, bits, values in (("x", 9, cycle.x), ("sum", 32, cycle.sums), ("weight", 8, cycle.weights), ("shadow", 8, cycle.shadow)):
            found = [[rtl.signed(array.register(f"element_{r}_{c}_{name}"), bits) for c in range(lanes)] for r in range(lanes)]
            wanted = [[rtl.signed(int(v) & ((1 << bits) - 1), bits) for v in row] for row in values]
            assert found == wanted, f"{name} after cycle {cycle.number}"
        before = cycle.multiply


def test_sums_can_be_read_when_the_pipeline_has_drained(rtl: ModuleType) -> None:
    """The last column of a row of sums is written 2 · lanes cycles after the row went in, and read one later: `pipeline_cycles`."""
    bank, lanes = rtl.unit("accumulators"), rtl.SHAPE.lanes
    bank.step(enable=1, row=5)
    seen = [bank.step(read=5, **{f"sums_{c}": 10 + c for c in range(lanes)}) for _ in range(2 * lanes + 1)]
    last = [found[f"found_{lanes - 1}"] for found in seen]
    assert last == [0] * (2 * lanes) + [10 + lanes - 1]


def test_sums_are_added_or_replaced(rtl: ModuleType) -> None:
    bank, lanes = rtl.unit("accumulators"), rtl.SHAPE.lanes
    sums = {f"sums_{c}": -3 - c for c in range(lanes)}
    for adds in (0, 1, 1, 0, 1):
        bank.step(enable=1, row=2, adds=adds)
        for _ in range(2 * lanes):
            bank.step(**sums)
    found = bank.step(read=2)
    assert [rtl.signed(found[f"found_{c}"], 32) for c in range(lanes)] == [2 * (-3 - c) for c in range(lanes)]
