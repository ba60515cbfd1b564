"""`--for stream` leaves out the passes that give the host work where the program is faster without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import tpucc
from tests.support.networks import network
from tpucc.driver import GIVES_THE_HOST_WORK
from tpucc.explain.sweeps.shared import Compiler
from tpucc.ir import Graph
from tpucc.options import Options
from tpucc.passes.base import GOALS, Context

HOST_BOUND = """weights random(seed=1)

model m(x: f32[4, 64, 64, 3] in [0.0, 1.0]):
    weight w: f32[3, 3, 3, 64]
    return softmax(conv2d(x, w, stride=2, padding="same"))
"""
LINK_BOUND = """weights random(seed=1)

model m(x: f32[1, 64, 64, 1] in [0.0, 1.0]):
    weight w: f32[5, 5, 1, 1]
    return conv2d(x, w, padding="same")
"""
OTHER_LAYERS = """weights random(seed=1)

model m(q: f32[400, 32], k: f32[32, 4], x: f32[2000, 4]):
    weight w: f32[4, 4]
    return (q @ k, relu(x @ w))
"""
CASES = {"host": (HOST_BOUND, "pack-patches"), "link": (LINK_BOUND, "pack-patches"), "others": (OTHER_LAYERS, "write-weights")}


def seconds(made: tpucc.Executable) -> float:
    found = made.stats["end_to_end"]["stream_seconds"]
    assert isinstance(found, float)
    return found


def listing(made: tpucc.Executable) -> bytes:
    return made.runtime.program.instructions.tobytes()


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_pass_that_makes_a_stream_slower_is_left_out(case: str) -> None:
    source, name = CASES[case]
    chosen, without = (tpucc.compile_source(source, goal="stream", omit=omit) for omit in ((), (name,)))
    assert seconds(chosen) == seconds(without)
    assert listing(chosen) == listing(without)
    (said,) = (note for note in chosen.notes if "left out" in note)
    assert said.startswith(f"{name} is left out: a batch of a stream takes ")
    alone, spared = (tpucc.compile_source(source, omit=omit).stats["end_to_end"]["seconds"] for omit in ((), (name,)))
    assert alone < spared  # for one batch the pass is a gain, and it stays
    assert not any("left out" in note for note in tpucc.compile_source(source).notes)


@pytest.mark.long
def test_a_pass_stays_where_the_stream_is_faster_with_it() -> None:
    source = Path("programs/08_fashion_cnn.tpu")
    chosen, without = (tpucc.compile(source, goal="stream", omit=omit) for omit in ((), ("pack-patches",)))
    assert seconds(chosen) < seconds(without)


def test_what_the_user_sets_is_not_left_out() -> None:
    settings = {"write-weights": {"computed_products": "device"}}
    made = tpucc.compile_source(OTHER_LAYERS, goal="stream", settings=settings)
    assert any("as --write-weights-computed-products asks" in note for note in made.notes)


@pytest.mark.parametrize("seed", [8, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (3, 11, 20))])
def test_a_stream_is_never_slower_with_them(seed: int) -> None:
    source = network(seed)
    own = tpucc.compile_source(source, goal="stream")
    for omit in (*((name,) for name in GIVES_THE_HOST_WORK), GIVES_THE_HOST_WORK):
        assert seconds(own) <= seconds(tpucc.compile_source(source, goal="stream", omit=omit)), omit


@pytest.mark.parametrize("case", ["others", *(pytest.param(case, marks=pytest.mark.soak) for case in ("host", "link"))])
def test_a_sweep_and_the_text_of_a_stage_make_the_same_choice(case: str, tmp_path: Path) -> None:
    source, _ = CASES[case]
    (path := tmp_path / "m.tpu").write_text(source)
    whole = tpucc.compile(path, goal="stream")
    assert Compiler().program(path, Options(goal="stream")).instructions.tobytes() == listing(whole)
    for snapshot in whole.compilation.snapshots:
        if snapshot.stage in ("weights", "place", *GIVES_THE_HOST_WORK):
            again = tpucc.resume(snapshot.text(with_data=True), like=whole, goal="stream")
            assert listing(again) == listing(whole), snapshot.stage


@dataclass(frozen=True)
class Noted:
    """Changes the graph, so that a later fault is its own."""

    name, summary, level = "noted", "another name", 1

    def run(self, graph: Graph, context: Context) -> Graph:
        return replace(graph, name="noted")


def test_a_fault_after_a_pass_of_the_users_is_told_as_it_is_without_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tpucc.schedule.pipeline.with_waits", lambda listing, waits: {}["x"])
    told = []
    for goal in GOALS:
        with pytest.raises(tpucc.PluginError) as failed:
            tpucc.compile_source(HOST_BOUND, goal=goal, passes=(Noted(),))
        told.append(str(failed.value))
    assert told[0] == told[1]
    assert "E0525: the pass noted" in told[0]
