"""What the tests of single parts have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tpucc.ir import Range


@pytest.fixture(scope="module")
def any_ranges() -> Iterator[None]:
    """For tests of time alone: no value's range is measured, which takes half of the compilation of a large batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tpucc.passes.calibrate._ranges", lambda probed, *_: dict.fromkeys(probed.measured, Range(-1.0, 1.0)))
        yield
