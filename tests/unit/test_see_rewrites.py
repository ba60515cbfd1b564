"""The rewrites of a pass: what hangs together of what changed, before and after."""

from __future__ import annotations

from pathlib import Path

import tpucc
from tests.support.pictures import dense_chain
from tpucc.ir import Graph
from tpucc.see.diagrams.diagram import Diagram
from tpucc.see.diagrams.rewrites import BUDGET, LARGEST, READABLE, Rewrite, rewrites

CNN = Path(__file__).parents[2] / "programs" / "05_digits_cnn.tpu"


def stages() -> list[tuple[str, Graph]]:
    made = tpucc.compile(CNN, overrides={"host_elements_per_second": 1e15}).compilation  # a host that packs pixels
    assert made is not None
    return [(each.stage, each.value) for each in made.snapshots if isinstance(each.value, Graph)]


def titles(part: Diagram | None) -> list[str]:
    return [] if part is None else [box.title for box in part.boxes if not box.outside and not box.small]


def test_each_fused_bias_is_a_rewrite_and_alike_ones_are_drawn_once() -> None:
    found = stages()
    drawn = rewrites([graph for _, graph in found])
    fused = [each for each in drawn if found[each.stage][0] == "fuse-bias"]
    assert [(each.alike, titles(each.before), titles(each.after)) for each in fused] == [
        (2, ["conv2d", "add"], ["convolution"]),
        (2, ["matmul", "add"], ["dense"]),
    ] or [each.alike for each in fused] == [3, 1]
    for each in fused:
        assert titles(each.before)[-1] == "add"
        assert len(titles(each.before)) == len(titles(each.after)) + 1
        assert each.before is not None
        assert any(box.outside for box in each.before.boxes), "what is around it"


def test_a_pass_that_notes_something_everywhere_has_no_picture() -> None:
    found = stages()
    named = {found[each.stage][0] for each in rewrites([graph for _, graph in found])}
    assert {"pack-patches", "fuse-bias", "fuse-activation", "quantise"} <= named
    assert not {"place", "calibrate"} & named


def size(drawn: list[Rewrite]) -> int:
    return sum(len(part.boxes) for each in drawn for part in (each.before, each.after) if part)


def test_the_pictures_are_bounded() -> None:
    graphs = [graph for _, graph in stages()]
    for budget in (0, 20, BUDGET):
        assert size(rewrites(graphs, budget)) <= budget
    inner = [titles(part) for each in rewrites(graphs) for part in (each.before, each.after)]
    assert max(map(len, inner)) <= READABLE
    vast = dense_chain("vast", 2, [4] * (LARGEST // 3))
    assert rewrites([vast, dense_chain("vast", 2, [4] * (LARGEST // 3 + 1))]) == []


def test_nothing_changed_is_no_rewrite() -> None:
    graph = dense_chain("same", 2, [4, 4])
    assert rewrites([graph, graph, dense_chain("same", 2, [4, 4])]) == []
