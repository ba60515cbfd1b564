"""Fixtures of the labs' tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tpucc.labs import find, grading
from tpucc.labs.cells import workshop


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """A workshop for all tests of this process: to make one takes longer than most tests."""
    with workshop(find("allocation").modules) as folder:
        yield folder


@pytest.fixture
def made_before(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking and grading in this process take the workshop that is there."""
    monkeypatch.setattr(grading, "workshop", lambda _: nullcontext(shared))
