"""What of a submission is nearly a copy of tpucc's own text, and which submissions of a class are alike: reasons for a talk. An instructor
judges; nothing is executed.

Statements are compared without names, annotations, comments and order; in labs of texts, lines without comments and spaces. What a student
begins with counts for nothing, and what many wrote counts for little: a statement of k submissions out of n has the weight
1 + log2(n / k), in whole numbers.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import combinations
from pathlib import Path

import networkx

from tpucc.labs.lab import Lab, Term
from tpucc.labs.start import starting_files
from tpucc.labs.submissions import Variants, seen, submissions, submitted
from tpucc.plugins.failures import Failed

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
    own, found = list(_functions_of(files)), list[str]()
    for name, functions in _library(lab):
        pairs = [(max((_equal(function, other) for other in own), default=0), function.total()) for function in functions]
        if equal := sum(same for same, _ in pairs):
            found.append(f"like {name}: {equal} of {sum(total for same, total in pairs if same)} statements")
    return tuple(found)


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


ALIKE = 60
"""Percent of the smaller submission's weight that two have in common, from which on they are shown."""
IN_COMMON = 8
"""Statements that two submissions have in common, below which nothing is said: there are few ways to write a little."""
COMPARED = 1_500
"""Statements of a submission that are read."""
LONG = 300
"""Characters of a text or bytes in a program, from which on it is pointed out."""
CALLS = frozenset({"exec", "eval", "compile", "__import__"})
MODULES = frozenset(
    {"base64", "binascii", "builtins", "codecs", "ctypes", "gc", "importlib", "inspect", "marshal", "pickle", "subprocess", "zlib"}
)
_COMMENT = re.compile(r"[#;].*")


@dataclass(frozen=True)
class Statement:
    """A statement of a submission: `text` without names, and the line of a file that it begins on."""

    text: str
    file: str
    line: int


@dataclass(frozen=True)
class Submitted:
    """A submission as it is compared. `remarks` are what is unusual in it, with its place; `like` is what of tpucc's own it is nearly a
    copy of; `lines` has its text by file and line; `problem` is why it can't be read."""

    name: str
    statements: tuple[Statement, ...] = ()
    remarks: tuple[str, ...] = ()
    like: tuple[str, ...] = ()
    lines: Mapping[tuple[str, int], str] | None = None
    problem: str = ""


@dataclass(frozen=True)
class Pair:
    """Two submissions that are alike: the percentage of the smaller one's weight that both have, and the statements in common."""

    one: Submitted
    other: Submitted
    percent: int
    common: tuple[tuple[Statement, Statement], ...]


@dataclass(frozen=True)
class Group:
    """Submissions of which each is like another one of the group, by their names. `pairs` has the closest ones that hold it together, one
    fewer than there are submissions; those that are most alike come first."""

    names: tuple[str, ...]
    pairs: tuple[Pair, ...]


def read_class(variants: Variants, folder: Path, earlier: Sequence[Path] = ()) -> tuple[list[Submitted], list[Submitted]]:
    """The submissions of a class, and those of the folders of earlier terms, by the names of their folders too."""
    lab = variants.lab

    def read(place: Path, before: str) -> list[Submitted]:
        return [_submitted(lab, path, before + path.name, _given(lab, variants.of(path))) for path in submissions(place, lab)]

    return read(folder, ""), [each for place in earlier for each in read(place, f"{place.name}/")]


@cache
def _given(lab: Lab, term: Term) -> frozenset[str]:
    """The statements that a student begins with."""
    return frozenset(each.text for name, text in starting_files(lab, term).items() for each in _read(name, text.encode()))


def groups_of(own: Sequence[Submitted], earlier: Sequence[Submitted] = ()) -> list[Group]:
    """The groups of submissions that are alike, the largest first. Two of earlier terms aren't compared."""
    everything = [*own, *earlier]
    bags = [Counter(statement.text for statement in each.statements) for each in everything]
    spread = Counter(text for bag in bags for text in bag)
    weights = {text: (len(everything) // count).bit_length() for text, count in spread.items()}
    totals = [sum(weights[text] * count for text, count in bag.items()) for bag in bags]
    alike = networkx.Graph()
    for one, other in combinations(range(len(everything)), 2):
        smaller = min(totals[one], totals[other])
        if one >= len(own) or not smaller:
            continue
        common = bags[one] & bags[other]
        shared = sum(weights[text] * count for text, count in common.items())
        if 100 * shared >= ALIKE * smaller and common.total() >= IN_COMMON:
            alike.add_edge(one, other, weight=100 * shared // smaller)
    groups = []
    for part in networkx.connected_components(alike):
        closest = networkx.maximum_spanning_edges(alike.subgraph(sorted(part)), data=True)
        pairs = [_pair(everything[min(ends)], everything[max(ends)], data["weight"]) for *ends, data in closest]
        ranked = sorted(pairs, key=lambda pair: (-pair.percent, pair.one.name, pair.other.name))
        groups.append(Group(tuple(sorted(everything[index].name for index in part)), tuple(ranked)))
    return sorted(groups, key=lambda group: (-group.pairs[0].percent, -len(group.names), group.names))


def _pair(one: Submitted, other: Submitted, percent: int) -> Pair:
    """The pair with its statements in common, each with one of the other's, in the order of the first submission."""
    left: dict[str, list[Statement]] = {}
    for statement in other.statements:
        left.setdefault(statement.text, []).append(statement)
    found = [(statement, left[statement.text].pop(0)) for statement in one.statements if left.get(statement.text)]
    return Pair(one, other, percent, tuple(found))


def _submitted(lab: Lab, path: Path, name: str, given: frozenset[str]) -> Submitted:
    if path.is_symlink():
        return Submitted(name, problem="it is a link")
    try:
        files = seen(submitted(path))
        read = [statement for file, content in files.items() for statement in _read(file, content)]
        remarks = [remark for file, content in files.items() if file.endswith(".py") for remark in _remarks(file, content)]
    except (Failed, OSError) as failure:
        return Submitted(name, problem=str(failure))
    except (RecursionError, ValueError, MemoryError):
        return Submitted(name, problem="its statements are nested too deep to be read")
    if len(read) > COMPARED:
        remarks.append(f"{len(read):,} statements, of which the first {COMPARED:,} are compared")
    lines = {(file, number): line for file, content in files.items() for number, line in enumerate(_lines(content), 1)}
    own = tuple(each for each in read[:COMPARED] if each.text not in given)
    return Submitted(name, own, tuple(remarks), likeness(lab, files), lines)


def _lines(content: bytes) -> list[str]:
    """The lines as Python counts them, which other separators don't end."""
    return content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _read(file: str, content: bytes) -> Iterator[Statement]:
    """The statements of a file of Python; of any other file, and of Python that can't be read, its lines without comments."""
    tree = parsed(content) if file.endswith(".py") else ""
    if not isinstance(tree, str):
        yield from (Statement(text, file, node.lineno) for node, text in statements(tree.body, nested=True))
    elif len(content) <= LONGEST:
        for number, line in enumerate(_lines(content), 1):
            if words := _COMMENT.sub("", line).split():
                yield Statement(" ".join([words[0], *sorted(map(_number, words[1:]))]), file, number)


def _number(word: str) -> str:
    """A word `name=value` of a listing, whose number may be written in several ways."""
    name, equals, value = word.rpartition("=")
    try:
        return f"{name}{equals}{int(value[:20], 0)}"
    except ValueError:
        return word


def _remarks(file: str, content: bytes) -> Iterator[str]:
    """What few solutions need: code that is made or fetched while it runs, and long texts, in which code can be hidden."""
    tree = parsed(content)
    if isinstance(tree, str):
        yield f"{file} {tree}"
        return
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in CALLS:
                yield f"{file}:{node.lineno} uses {name}"
            case ast.Import(names=names):
                yield from (f"{file}:{node.lineno} imports {each.name}" for each in names if each.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in MODULES:
                yield f"{file}:{node.lineno} imports {module}"
            case ast.Constant(value=str() | bytes() as value) if len(value) >= LONG and not _is_prose(value):
                yield f"{file}:{node.lineno} has a text of {len(value):,} characters"


def _is_prose(value: str | bytes) -> bool:
    """Whether a long text is words with spaces between them."""
    return isinstance(value, str) and len(value.split()) > len(value) // 12
