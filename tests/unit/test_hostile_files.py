"""Files that lie, by the hundred: each ends in a message or a result, in little time and memory. A fault is named by kind and seed."""

from __future__ import annotations

import pytest

from tests.support.campaign import campaign
from tests.support.seeds import at_length

pytestmark = pytest.mark.long

ORDINARY = {"program": 10, "archive": 5, "target": 5}


@pytest.mark.parametrize("kind", ORDINARY)
def test_hostile_files(kind: str) -> None:
    assert campaign(kind, 0, ORDINARY[kind]) == []


@at_length(1_000, 100)
@pytest.mark.parametrize("kind", ORDINARY)
def test_many_hostile_files(kind: str, seeds: range) -> None:
    assert campaign(kind, seeds.start, len(seeds)) == []
