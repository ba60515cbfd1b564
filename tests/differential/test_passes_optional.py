"""Every program compiles with each optional pass left out and at every level, and the machine equals the reference each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpucc.driver import compile_source, pipeline
from tpucc.interop.sources import read_source
from tpucc.options import Options
from tpucc.passes.pipeline import PASSES
from tpucc.runtime.check import compare_with_reference, random_inputs
from tpucc.runtime.runtime import Runtime

ROOT = Path(__file__).resolve().parents[2]
SMALLER = {
    "imdb_lstm": {"time": "4"},
    "resnet": {"blocks": "1", "batch": "1"},
    "mnist_cnn": {"batch": "2"},
    "05_digits_cnn": {"batch": "8"},
    "06_digits_lstm": {"batch": "8"},
    "07_mnist_cnn": {"batch": "2"},
    "08_fashion_cnn": {"batch": "2"},
    "09_cifar_resnet": {"batch": "1", "n": "1"},
    "10_imdb_lstm": {"batch": "2", "time": "4", "words": "500"},
    "12_mlp_mixer_block": {"patches": "20", "channels": "24"},
}
TOO_LARGE = {"11_resnet50"}
PROGRAMS = sorted([*(ROOT / "programs").glob("*.tpu"), *(ROOT / "tests" / "programs").glob("*.tpu")])
PROGRAMS = [path for path in PROGRAMS if path.stem not in TOO_LARGE]
OPTIONAL = sorted({p.name for p in PASSES if p.level > 0})
WAYS = [{"omit": frozenset({name})} for name in OPTIONAL] + [{"level": 0}, {"level": 1}]
WAYS += [
    {"settings": {"calibrate": {"method": "percentile", "percentile": 99.0}}},
    {"settings": {"quantise": {"granularity": "per_tensor"}}},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way.values())))
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_compiles_and_equals_the_reference(path: Path, way: dict[str, object]) -> None:
    options = Options(params=SMALLER.get(path.stem, {}), **way)  # type: ignore[arg-type]
    made = compile_source(read_source(path), path.parent, options)
    assert made.program is not None
    assert made.layers is not None
    runtime = Runtime(made.program)
    compared = compare_with_reference(runtime, made.layers, random_inputs(runtime))
    assert not [c for c in compared if c.unequal]


def test_levels_run_what_they_say() -> None:
    assert {p.level for p in pipeline(Options(level=0))} == {0}
    second = {"batch-products", "fold-scales", "fold-slices", "hoist-activations", "reassociate-bias"}
    assert {p.name for p in PASSES} - {p.name for p in pipeline(Options(level=1))} == second
