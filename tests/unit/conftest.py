"""What the tests of single parts have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tpucc.ir import Range
from tpucc.passes.calibrate import Calibrate


@pytest.fixture(autouse=True, scope="module")
def layouts_without_a_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Most tests that compile don't look at pictures, and Graphviz works in two processes for each."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.path.stem.startswith(PICTURES):
            patch.setenv("TPUCC_DOT", "builtin")  # the core's tests run without diagrams
        yield


@pytest.fixture(scope="module")
def any_ranges() -> Iterator[None]:
    """For tests of time alone: no value's range is measured, which takes half of the compilation of a large batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Calibrate, "_ranges", lambda self, probed, *_: dict.fromkeys(probed.measured, Range(-1.0, 1.0)))
        yield


PICTURES = ("test_viz_", "test_pictures", "test_page", "test_notebook", "test_quality")
