"""The list of faults fits the code: each can be planted, changes something, and names tests that exist. `make faults` plants them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.faults.plant import Fault, faults, said_by
from tests.support.cases import each, titled

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {path.parent.name for path in (ROOT / "tpucc").glob("*/__init__.py")}


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_each_can_be_planted(fault: Fault) -> None:
    text = fault.place(ROOT).read_text("utf-8")
    planted = text.replace(fault.old, fault.new)
    assert planted != text
    if fault.place(ROOT).suffix == ".py":
        ast.parse(planted)


@each(titled({fault.name: fault for fault in faults()}))
def test_each_names_tests_of_every_run(fault: Fault) -> None:
    """Functions that are there, of which `make test` leaves out some at most."""
    assert fault.tests
    assert not all(is_left_out(test) for test in fault.tests)


def test_make_test_leaves_out_what_takes_long() -> None:
    assert said_by("test")[-2:] == ["-m", "not long"]
    assert said_by("quick")[-3:-1] == ["-m", "not long"]
    assert not [word for word in (*said_by("test"), *said_by("quick")) if "$" in word], "pytest gets no variable of make"


def is_left_out(test: str) -> bool:
    """Whether a test, `file::function`, or the file that it is in is marked `long`. Raises `ValueError` when it isn't there."""
    path, _, name = test.partition("::")
    parts = parsed(path).body
    functions = [part for part in parts if isinstance(part, ast.FunctionDef) and part.name == name]
    if len(functions) != 1:
        raise ValueError(f"there is no test {test}")
    whole = [part.value for part in parts if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == "pytestmark"]
    marks = [mark for value in whole for mark in (value.elts if isinstance(value, ast.List) else [value])]
    return "pytest.mark.long" in map(ast.unparse, [*marks, *functions[0].decorator_list])


@cache
def parsed(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text("utf-8"))


def test_every_package_has_one() -> None:
    assert PACKAGES - {fault.under.split("/")[1] for fault in faults()} == set()
