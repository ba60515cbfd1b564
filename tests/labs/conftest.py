"""Fixtures of the labs' tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tpucc.guest.jails import JAILS, Jail, probed
from tpucc.labs import find, grading
from tpucc.labs.cells import cell, workshop
from tpucc.labs.lab import Lab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of all labs alike, in `test_labs.py`, lab by lab: a process keeps what a lab compiles, and runs neighbours. Those of a lab
    whose packages aren't installed are skipped."""
    for item in items:
        if (lab := _lab(item)) is not None and lab.missing:
            item.add_marker(pytest.mark.skip(reason=f"{', '.join(lab.missing)} is not installed"))
    places = [place for place, item in enumerate(items) if item.path == Path(__file__).with_name("test_labs.py")]
    ordered = sorted((items[place] for place in places), key=_number)
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


def _number(item: pytest.Item) -> int:
    """Of the lab that a test has as its argument; -1 without one."""
    lab = _lab(item)
    return -1 if lab is None else lab.number


def _lab(item: pytest.Item) -> Lab | None:
    """The lab that a test of this folder has as its argument, if any."""
    own = item.path.is_relative_to(Path(__file__).parent)
    lab = item.callspec.params.get("lab") if own and isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    return lab if isinstance(lab, Lab) else None


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """A workshop for all tests of this process: to make one takes longer than most tests."""
    with workshop(find("allocation").modules) as folder:
        yield folder


@pytest.fixture(scope="session")
def jail(shared: Path) -> Jail:
    """The best jail of this machine; limits alone bound no root, and no file outside."""
    with cell(shared, {}, "") as made:
        findings = [probed(jail, made) for jail in JAILS]
    working = [found.jail for found in findings if found.works]
    if not working:
        pytest.skip("; ".join(f"{found.jail.name}: {found.reason}" for found in findings))
    return working[0]


@pytest.fixture
def made_before(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking and grading in this process take the workshop that is there."""
    monkeypatch.setattr(grading, "workshop", lambda _: nullcontext(shared))
