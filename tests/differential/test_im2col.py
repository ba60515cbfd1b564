"""The benchmark's im2col forward computes what the operators' references do: a baseline that is wrong would be no baseline."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support.cases import one_of
from tests.support.networks import drawn, elaborated, network, results

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def im2col() -> ModuleType:
    """The module of benchmarks/, which is no package."""
    found = importlib.util.spec_from_file_location("im2col", ROOT / "benchmarks" / "im2col.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("first", one_of(2, range(0, 100, 20)))
def test_forward_equals_the_evaluator(im2col: ModuleType, first: int) -> None:
    compared = 0
    for seed in range(first, first + 20):
        source = network(seed)
        graph = elaborated(source)
        inputs = drawn(graph, seed)
        wanted, found = results(graph, inputs), im2col.forward(graph, inputs)
        assert wanted.keys() == found.keys()
        for name, value in wanted.items():
            if value.dtype == np.float32:
                assert np.abs(found[name] - value).max() <= 1e-5 * max(1.0, np.abs(value).max()), source
                compared += 1
    assert compared > 10
