"""Every program compiles with each optional pass left out and at every level, and the machine equals the reference each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import LONG, one_of
from tpucc.compilation import Compilation
from tpucc.driver import compile_source
from tpucc.interop.sources import read_source
from tpucc.options import Options
from tpucc.passes.pipeline import PASSES
from tpucc.runtime.check import Comparison, compare_with_reference, random_inputs
from tpucc.runtime.runtime import Runtime
from tpucc.stage_names import passes_of

ROOT = Path(__file__).resolve().parents[2]
SMALLER = {
    "imdb_lstm": {"time": "4"},
    "resnet": {"blocks": "1", "batch": "1"},
    "mnist_cnn": {"batch": "2"},
    "05_digits_cnn": {"batch": "8"},
    "06_digits_lstm": {"batch": "4"},
    "07_mnist_cnn": {"batch": "2"},
    "08_fashion_cnn": {"batch": "2"},
    "09_cifar_resnet": {"batch": "1", "n": "1"},
    "10_imdb_lstm": {"batch": "2", "time": "4", "words": "500"},
    "14_digits_resnet": {"batch": "4"},
    "12_mlp_mixer_block": {"patches": "10", "channels": "12"},
}
TOO_LARGE = {"11_resnet50"}
PROGRAMS = sorted([*(ROOT / "programs").glob("*.tpu"), *(ROOT / "tests" / "programs").glob("*.tpu")])
LIKE_OTHERS = {"resnet", "mnist_cnn", "07_mnist_cnn", "08_fashion_cnn", "09_cifar_resnet", "imdb_lstm", "10_imdb_lstm"}
"""Programs whose layers others have too: in `make soak`."""
CASES = [
    pytest.param(path, id=path.stem, marks=pytest.mark.soak if path.stem in LIKE_OTHERS else ())
    for path in PROGRAMS
    if path.stem not in TOO_LARGE
]
OPTIONAL = frozenset(p.name for p in PASSES if p.level > 0)
WAYS: tuple[dict[str, Any], ...] = (
    {"level": 0},
    {"level": 1},
    {"settings": {"calibrate": {"method": "percentile", "percentile": 99.0}}},
    {"settings": {"quantise": {"granularity": "per_tensor"}}},
)


def compiled(path: Path, **way: Any) -> Compilation:
    return compile_source(read_source(path), path.parent, Options(params=SMALLER.get(path.stem, {}), **way))


def unequal(made: Compilation) -> list[Comparison]:
    """What the machine computes otherwise than the reference."""
    assert made.program is not None
    assert made.layers is not None
    runtime = Runtime(made.program)
    return [c for c in compare_with_reference(runtime, made.layers, random_inputs(runtime)) if c.unequal]


def check(path: Path, first: int, step: int) -> None:
    """In every `step`th of the ways, from the `first` on, and as many of the passes left out that change something in this program."""
    whole = compiled(path)
    assert unequal(whole) == []
    changing = {snapshot.stage for snapshot in whole.snapshots if snapshot.changed} & OPTIONAL
    left_out = [name for at, name in enumerate(sorted(OPTIONAL)) if at % step == first and name in changing]
    for way in (*WAYS[first::step], *({"omit": frozenset({name})} for name in left_out)):
        assert unequal(compiled(path, **way)) == [], way


@pytest.mark.long
@pytest.mark.parametrize("path", one_of(5, CASES, LONG))
def test_compiles_and_equals_the_reference(path: Path) -> None:
    """Each way and each pass left out in one of four programs; in `make soak` in all."""
    check(path, PROGRAMS.index(path) % 4, 4)


@pytest.mark.soak
@pytest.mark.parametrize("path", CASES)
def test_it_does_without_any_pass(path: Path) -> None:
    check(path, 0, 1)


def test_a_pass_that_changes_nothing_makes_no_difference() -> None:
    whole = compiled(ROOT / "programs" / "04_digits_mlp.tpu")
    changing = {snapshot.stage for snapshot in whole.snapshots if snapshot.changed}
    without = compiled(ROOT / "programs" / "04_digits_mlp.tpu", omit=OPTIONAL - changing)
    assert OPTIONAL - changing
    assert without.program == whole.program


def test_levels_run_what_they_say() -> None:
    assert {p.level for p in passes_of(Options(level=0))} == {0}
    assert {p.name for p in PASSES} == {p.name for p in passes_of(Options())}
    asked = {p.name for p in PASSES if p.level > 0}
    assert asked <= {p.name for p in passes_of(Options(level=0, include=frozenset(asked)))}
    second = {"batch-products", "fold-scales", "fold-slices", "hoist-activations", "reassociate-bias"}
    assert {p.name for p in PASSES} - {p.name for p in passes_of(Options(level=1))} == second
