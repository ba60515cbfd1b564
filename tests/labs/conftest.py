"""Fixtures of the labs' tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tpucc.labs import find, grading
from tpucc.labs.cells import workshop
from tpucc.labs.lab import Lab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of all labs alike, in `test_labs.py`, lab by lab: a process keeps what a lab compiles, and runs neighbours."""
    places = [place for place, item in enumerate(items) if item.path == Path(__file__).with_name("test_labs.py")]
    ordered = sorted((items[place] for place in places), key=_number)
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


def _number(item: pytest.Item) -> int:
    """Of the lab that a test has as its argument; -1 without one."""
    lab = item.callspec.params.get("lab") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    return lab.number if isinstance(lab, Lab) else -1


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """A workshop for all tests of this process: to make one takes longer than most tests."""
    with workshop(find("allocation").modules) as folder:
        yield folder


@pytest.fixture
def made_before(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking and grading in this process take the workshop that is there."""
    monkeypatch.setattr(grading, "workshop", lambda _: nullcontext(shared))
