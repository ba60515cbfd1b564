"""Which submissions of a class are alike, and what in them is unusual: reasons for a talk. An instructor judges; nothing is executed.

Statements are compared without names, annotations, comments and order; in labs of texts, lines without comments and spaces. What a student
begins with counts for nothing, and what many wrote counts for little: a statement of k submissions out of n has the weight
1 + log2(n / k), in whole numbers.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import networkx

from tpucc.labs.lab import Lab, Term
from tpucc.labs.likeness import LONGEST, likeness, parsed, statements
from tpucc.labs.start import starting_files
from tpucc.labs.submissions import NOTES, submissions, submitted
from tpucc.labs.variants import Variants
from tpucc.plugins.failures import Failed

ALIKE = 60
"""Percent of the smaller submission's weight that two have in common, from which on they are shown."""
LEAST = 8
"""Statements that two submissions have in common, below which nothing is said: there are few ways to write a little."""
MOST = 1_500
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
        if 100 * shared >= ALIKE * smaller and common.total() >= LEAST:
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
        files = {file: content for file, content in submitted(path).items() if not file.endswith(NOTES)}
        read = [statement for file, content in files.items() for statement in _read(file, content)]
        remarks = [remark for file, content in files.items() if file.endswith(".py") for remark in _remarks(file, content)]
    except (Failed, OSError) as failure:
        return Submitted(name, problem=str(failure))
    except (RecursionError, ValueError, MemoryError):
        return Submitted(name, problem="its statements are nested too deep to be read")
    if len(read) > MOST:
        remarks.append(f"{len(read):,} statements, of which the first {MOST:,} are compared")
    lines = {(file, number): line for file, content in files.items() for number, line in enumerate(_lines(content), 1)}
    own = tuple(each for each in read[:MOST] if each.text not in given)
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
