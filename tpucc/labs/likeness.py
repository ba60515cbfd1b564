"""What of a submission is nearly a copy of tpucc's own text: a hint for instructors, who judge it. Nothing is executed.

Functions are compared by their statements, without names of variables, annotations and docstrings. The order of statements doesn't count.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path

from tpucc.labs.lab import Lab

PACKAGE = Path(__file__).parents[1]
LEAST = 6
"""Statements of a function below which it isn't compared: there are few ways to write a short one."""
NEARLY = 0.8
"""The share of both functions' statements that are equal, from which on they are alike."""
LONGEST, MOST = 100_000, 5_000
"""Bytes of a file above which it isn't read, and statements of a submission after which no others are."""
ENCODINGS = frozenset({"utf-8", "utf-8-sig", "ascii", "iso-8859-1", "iso-8859-15", "cp1252"})
"""In which files are read: to decode others can take minutes."""
Statements = Counter[str]


def likeness(lab: Lab, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """For each file of tpucc's that functions of the submission are like, as `like tpucc/schedule/allocate.py: 42 of 45 statements`."""
    own = list(_functions_of(files))
    return tuple(filter(None, (_compared(name, functions, own) for name, functions in _library(lab))))


def _compared(name: str, functions: list[Statements], own: list[Statements]) -> str:
    equal = of = 0
    for function in functions:
        most = max((_equal(function, other) for other in own), default=0)
        equal, of = equal + most, of + (function.total() if most else 0)
    return f"like {name}: {equal} of {of} statements" if equal else ""


def _equal(function: Statements, other: Statements) -> int:
    """How many statements are equal, of functions that are nearly alike; else 0."""
    same = (function & other).total()
    return same if same >= NEARLY * max(function.total(), other.total()) else 0


def _functions_of(files: Mapping[str, bytes]) -> Iterator[Statements]:
    """The functions of a submission, as far as it can be read and isn't too large."""
    count = 0
    for name, content in files.items():
        if name.endswith(".py") and len(content) <= LONGEST:
            for function in _functions(content):
                count += function.total()
                if count > MOST:
                    return
                yield function


@cache
def _library(lab: Lab) -> list[tuple[str, list[Statements]]]:
    """The functions of the modules in which the lab's solutions stand, of the lab's package and of its reference, by their files."""
    marker = re.compile(rf"^[ \t]*# lab {lab.number} begin", re.MULTILINE)
    reference = lab.material_folder / "reference.py"
    texts = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py")) if not path.is_relative_to(PACKAGE / "labs")}
    own = [path for path in (*sorted(lab.folder.glob("*.py")), reference) if path.is_file()]
    texts = {path: text for path, text in texts.items() if marker.search(text)} | {path: path.read_text("utf-8") for path in own}
    return [(path.relative_to(PACKAGE.parent).as_posix(), list(_functions(text.encode()))) for path, text in texts.items()]


def _functions(text: bytes) -> Iterator[Statements]:
    """The functions of a file that are long enough; none of one that is no Python in UTF-8, whatever encoding it names: to decode some
    takes minutes."""
    tree = parsed(text)
    if isinstance(tree, str):
        return
    try:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (found := Counter(text for _, text in statements(node.body))).total() >= LEAST:
                yield found
    except (ValueError, RecursionError, MemoryError):
        return


def parsed(text: bytes) -> ast.Module | str:
    """The tree of a file, or why it has none. It is read in the encoding that it names, if that is one of `ENCODINGS`."""
    if len(text) > LONGEST:
        return f"is longer than {LONGEST:,} bytes"
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(text).readline)
        if encoding not in ENCODINGS:
            return f"is written in {encoding}"
        return ast.parse(text.decode(encoding))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "is no Python"


def statements(body: list[ast.stmt], *, nested: bool = False) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a body and of those inside it, each with its text without names. Functions and classes inside have their own: they
    are left out, or `nested` with the others."""
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        inner = [held for name in ("body", "orelse", "finalbody") if isinstance(held := getattr(node, name, None), list)]
        inner += [handler.body for handler in getattr(node, "handlers", ())] + [case.body for case in getattr(node, "cases", ())]
        yield node, _text(node)
        if nested or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for held in inner:
                yield from statements(held, nested=nested)


def _text(node: ast.stmt) -> str:
    """A statement without the ones inside it: its kind, operators, constants, attributes and calls, but no names."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return _text(ast.Assign([node.target], node.value))
    parts = [type(node).__name__]
    pending = [value for name, value in ast.iter_fields(node) if name not in _LEFT_OUT]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += [*value, len(value)]
        elif isinstance(value, ast.AST):
            parts.append(type(value).__name__)
            of_self = isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self"
            pending += [held for name, held in ast.iter_fields(value) if name not in _LEFT_OUT and not (of_self and name == "attr")]
        else:
            parts.append(hex(value) if isinstance(value, int) else repr(value))  # a number of many digits has no decimal text
    return " ".join(parts)


_LEFT_OUT = frozenset(
    ("body", "orelse", "finalbody", "handlers", "cases", "id", "arg", "name", "annotation", "returns", "ctx", "simple", "type_comment")
)
"""Fields of syntax trees that say nothing here: statements inside others, names, and what is no part of the meaning."""
