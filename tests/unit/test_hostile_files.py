"""Files that lie, by the hundred: each ends in a message or a result, in little time and memory. A fault is named by kind and seed."""

from __future__ import annotations

import pytest

from tests.support.campaign import campaign

pytestmark = pytest.mark.long

ORDINARY = {"program": 10, "archive": 5, "target": 5}
SOAK = {"program": 2000, "archive": 500, "target": 200}


@pytest.mark.parametrize("kind", ORDINARY)
def test_hostile_files(kind: str) -> None:
    assert campaign(kind, 0, ORDINARY[kind]) == []


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "first"), [(kind, first) for kind, count in SOAK.items() for first in range(0, count, 100)])
def test_many_hostile_files(kind: str, first: int) -> None:
    assert campaign(kind, first, 100) == []
