"""A picture of a statement's syntax tree, with the nodes that elaboration makes of each part beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from tpucc.ir import Graph
from tpucc.language import ast
from tpucc.see.palette import Kind
from tpucc.see.svg import Markup, kind_rect, label, line, picture
from tpucc.see.text import LARGE, NORMAL, SMALL

MARGIN, TOP, WIDE, HIGH, COLUMN, ROW = 24.0, 104.0, 88.0, 42.0, 104.0, 78.0
NODES_LEFT, NODES_WIDE = 366.0, 268.0


@dataclass(frozen=True, slots=True)
class Part:
    """A node of the tree with the middle of its box's upper edge, and the parts below it."""

    node: ast.Node
    x: float
    y: float
    below: tuple[Part, ...]

    def all(self) -> Iterator[Part]:
        yield self
        for part in self.below:
            yield from part.all()


def tree_svg(title: str, statement: ast.Return, graph: Graph) -> str:
    """The tree, its root on top and its names in the last row. To the right are the nodes of `graph` that come of each part: a column for
    each time that the statement was evaluated."""
    parts = list(_placed(statement, 0, _height(statement), count()).all())
    made = [list(_made(part.node, graph)) for part in parts]
    says = "A box is a part of the tree, with its place in the source. At its right stand the nodes that come of it."
    head = label(title, MARGIN, 34, LARGE, font_weight="bold"), label(says, MARGIN, 56, NORMAL, "soft")
    rounds = [label(f"round {n}", NODES_LEFT + n * NODES_WIDE, TOP - 16, SMALL, "soft") for n in range(max(map(len, made)))]
    lines = [line(p.x, p.y + HIGH, q.x, q.y, "soft") for p in parts for q in p.below]
    boxes = [mark for part in parts for mark in _box(part)]
    nodes = [
        label(text, NODES_LEFT + n * NODES_WIDE, part.y + HIGH / 2 + 4, SMALL)
        for part, texts in zip(parts, made, strict=True)
        for n, text in enumerate(texts)
    ]
    width, height = NODES_LEFT + len(rounds) * NODES_WIDE, max(part.y for part in parts) + HIGH + MARGIN
    return picture(
        "statement-tree", f"{title}: its tree, and the nodes that come of it", width, height, *head, *rounds, *lines, *boxes, *nodes
    )


def _placed(node: ast.Node, depth: int, last: int, leaves: Iterator[int]) -> Part:
    """A part above the middle of those below it; one that has none is beside the one before, in the last row."""
    below = tuple(_placed(part, depth + 1, last, leaves) for part in _inner(node))
    x = sum(part.x for part in below) / len(below) if below else MARGIN + WIDE / 2 + next(leaves) * COLUMN
    return Part(node, x, TOP + (depth if below else last) * ROW, below)


def _height(node: ast.Node) -> int:
    return 1 + max(map(_height, _inner(node)), default=-1)


def _inner(node: ast.Node) -> tuple[ast.Node, ...]:
    match node:
        case ast.Return(value=ast.Node() as value):
            return (value,)
        case ast.Chain(operands=operands):
            return operands
    return ()


def _word(node: ast.Node) -> str:
    match node:
        case ast.Chain(operators=operators):
            return f"Chain {' '.join(operators)}"
        case ast.Name(text=text):
            return f"Name {text}"
    return type(node).__name__


def _box(part: Part) -> Iterator[Markup]:
    yield kind_rect(Kind.HOST, part.x - WIDE / 2, part.y, WIDE, HIGH, rx=5)
    yield label(_word(part.node), part.x, part.y + 18, NORMAL, "ink", "middle")
    yield label(str(part.node.span), part.x, part.y + 34, SMALL, "soft", "middle")


def _made(node: ast.Node, graph: Graph) -> Iterator[str]:
    """The nodes of the graph whose place is that of a part of the tree."""
    for made in graph:
        if made.origin.spans[:1] == (node.span,):
            yield f"{made.name} = {made.op}({', '.join(made.operands)}) : {made.type.brief}"
