"""A comprehension evaluates its conditions for each element: a set that is the same for all of them is made before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
MAKING = ast.BinOp | COMPREHENSIONS
"""What makes a collection anew each time: the union or difference of sets, too."""


@pytest.mark.soak
def test_no_condition_makes_the_same_collection_for_each_element() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "tpucc").rglob("*.py"))
        for line in made_again(path.read_text("utf-8"))
    ]
    assert not found, f"quadratic in time; make the collection before the comprehension: {', '.join(found)}"


def test_such_a_condition_is_found() -> None:
    assert list(made_again("[x for x in a if x not in b - c]")) == [1]
    assert list(made_again("[x for x in a if x in {y for y in b}]")) == [1]
    assert not list(made_again("[x for x in a if x in b]\n[x for x in a if x in b - x.c]"))


def made_again(text: str) -> Iterator[int]:
    """The lines of conditions `x in COLLECTION` of comprehensions, with a collection that is made there of names from outside."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, COMPREHENSIONS):
            bound = {name for each in node.generators for name in _names(each.target)}
            for condition in (test for each in node.generators for test in each.ifs):
                for part in ast.walk(condition):
                    if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.In | ast.NotIn):
                        collection = part.comparators[0]
                        if isinstance(collection, MAKING) and not bound & set(_names(collection)):
                            yield part.lineno


def _names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
