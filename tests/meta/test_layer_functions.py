"""The functions of layers are enumerations: no layer has a field that is a string, and nothing compares or makes one by a string."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import get_args, get_type_hints

from tpucc.layers.kinds import LAYERS

ROOT = Path(__file__).parents[2] / "tpucc"
NAMES = {kind.__name__ for kind in LAYERS.values()}
FIELDS = {name for kind in LAYERS.values() for name, of in get_type_hints(kind).items() if isinstance(of, type) and issubclass(of, StrEnum)}
"""The fields that are enumerations: `function`, `unit`."""


def test_no_field_of_a_layer_is_a_string() -> None:
    hints = [(kind.__name__, name, of) for kind in LAYERS.values() for name, of in get_type_hints(kind).items()]
    assert not [(kind, name) for kind, name, of in hints if str in (of, *get_args(of))]
    assert {"function", "unit"} == FIELDS


def test_no_function_of_a_layer_is_a_string() -> None:
    paths = [path for path in ROOT.rglob("*.py") if "tpucc.layers.kinds import" in path.read_text("utf-8")]
    found = [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in strings(ast.parse(path.read_text("utf-8")))]
    assert paths
    assert not found, f"write the member of the enumeration: {', '.join(found)}"


def test_what_is_written_as_a_string_is_found() -> None:
    assert list(
        strings(ast.parse('Vector("add")\nlayer.function in ("max", "average")\nVector(function="table")\nreplace(x, unit="vector")'))
    )
    for text in ('Pool("max", (1, 1))', 'layer.function == "add"', '"concat" != node.attributes.function', 'replace(x, unit="vector")'):
        assert list(strings(ast.parse(text))) == [1], text
    assert not list(strings(ast.parse('Vector(VectorFunction.ADD)\nself.unit == "cheaper"\nMove(function, axis)')))
    assert list(strings(ast.parse('match x:\n    case Vector(function="table"):\n        pass'))) == [2]


def strings(tree: ast.Module) -> Iterator[int]:
    """The lines where a field of a layer is made of, or compared with, a string."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str()), *_]) if name in NAMES:
                yield node.lineno
            case ast.keyword(arg=name, value=ast.Constant(value=str())) if name in FIELDS:
                yield node.lineno
            case ast.MatchClass(cls=ast.Name(id=name), kwd_patterns=patterns) if name in NAMES:
                yield from (each.lineno for each in patterns if isinstance(each, ast.MatchValue) and isinstance(each.value, ast.Constant))
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                literal = any(isinstance(part, ast.Constant) and isinstance(part.value, str) for side in sides for part in ast.walk(side))
                if literal and any(map(_is_field, sides)):
                    yield node.lineno


def _is_field(node: ast.expr) -> bool:
    """Whether it is `layer.function` or the like; an option of a pass, `self.unit`, is none of a layer's."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return isinstance(node, ast.Attribute) and node.attr in FIELDS and not own
