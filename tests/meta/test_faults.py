"""The list of faults fits the code: each can be planted, changes something, and names tests that exist. `make faults` plants them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.faults.plant import Fault, faults

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {path.parent.name for path in (ROOT / "tpucc").glob("*/__init__.py")}


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_each_can_be_planted(fault: Fault) -> None:
    text = fault.place(ROOT).read_text("utf-8")
    planted = text.replace(fault.old, fault.new)
    assert planted != text
    if fault.place(ROOT).suffix == ".py":
        ast.parse(planted)
    assert fault.tests
    assert [test for test in fault.tests if not (ROOT / test).exists()] == []


def test_every_package_has_one() -> None:
    assert PACKAGES - {fault.under.split("/")[1] for fault in faults()} == set()
