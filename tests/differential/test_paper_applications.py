"""The paper's applications on TPU v1, held against Table 3 (Jouppi et al., ISCA 2017): one target, one set of rules."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.support.cases import one_of
from tpucc.explain.paper.applications import Measured, measure_file
from tpucc.explain.paper.published import published
from tpucc.target import load_target

pytestmark = pytest.mark.long

PROGRAMS = Path(__file__).resolve().parents[2] / "programs" / "paper"
PARTS = ("array_active", "weight_stall", "weight_shift", "non_matrix")
"""The rows that share all cycles: 1, 4, 5 and 6."""


@cache
def measured(name: str, level: int = 2) -> Measured:
    return measure_file(PROGRAMS / f"{name}.tpu", load_target("tpu_v1"), level)


def differences(name: str, level: int = 2) -> dict[str, float]:
    """Ours less the paper's, in points, for every row but the last."""
    paper, ours = published().applications[name].table3, measured(name, level).stats["breakdown"]
    return {row: ours[row] - share for row, share in paper.items() if row != "tops"}


@pytest.mark.parametrize(("name", "percent"), one_of(2, [("mlp0", 10), ("mlp1", 10), ("cnn0", 10), ("lstm0", 20)]))
def test_speeds(name: str, percent: float) -> None:
    assert measured(name).stats["tops"] == pytest.approx(published().applications[name].table3["tops"], rel=percent / 100)


@pytest.mark.parametrize("name", ["mlp0", "mlp1", "lstm0", pytest.param("lstm1", marks=pytest.mark.soak)])
def test_dense_and_recurrent_networks_wait_for_weights_most(name: str) -> None:
    rows = measured(name).stats["breakdown"]
    assert max(PARTS, key=lambda part: rows[part]) == "weight_stall"
    assert rows["weight_shift"] == pytest.approx(published().applications[name].table3["weight_shift"], abs=3)


def test_convolutions_hardly_wait_for_weights() -> None:
    assert measured("cnn0").stats["breakdown"]["weight_stall"] < 0.5


def test_every_row_of_mlp0() -> None:
    assert max(map(abs, differences("mlp0").values())) < 10


@pytest.mark.parametrize(("name", "points"), [("mlp0", 3), ("mlp1", 6.5), pytest.param("lstm0", 7.5, marks=pytest.mark.soak)])
def test_programs_without_optimisation_have_the_paper_s_rows(name: str, points: float) -> None:
    """Nothing is overlapped there but fetches and products, and most of what the counters of the MLPs can't explain is there."""
    found = differences(name, level=0)
    assert max(map(abs, found.values())) < points
    assert max(abs(found[row]) for row in (*PARTS, "useful_macs", "unused_macs")) < 5


def test_the_reasons_speak_of_mlp1_s_input() -> None:
    """A seventh of its cycles on TPU v1, a third on TPU′: what no faster weight memory shortens."""
    prime = measure_file(PROGRAMS / "mlp1.tpu", load_target("tpu_v1_prime"))
    shares = [numbers.stats["breakdown"]["input_stall"] for numbers in (measured("mlp1"), prime)]
    assert shares == pytest.approx([100 / 7, 100 / 3], rel=0.03)
