"""The graph of one step of training as a picture: forward on the left from top to bottom, backward beside it from bottom to top, the
optimizer on the right.

The gradients that an operator's rule makes stand beside the operator. So the arrows from left to right are the activations that the forward
part keeps for the backward one. Where the forward part has many operators, it is collapsed as any diagram is, and each box has the
gradients of all its operators beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tpucc.diagnostics import counted, listed
from tpucc.explain.names import MAX_NAME
from tpucc.explain.quantities import size
from tpucc.ir import Node
from tpucc.see.diagrams.collapse import collapse
from tpucc.see.diagrams.diagram import Box, Cluster, Diagram, Edge, largest, shares_of
from tpucc.see.diagrams.layout import Frame, Layout, Route
from tpucc.see.diagrams.operators import CONSTANTS, constant_label, edge_label, kind_of, operator_diagram
from tpucc.see.palette import Kind
from tpucc.see.svg import Point, Rect, centred, hull
from tpucc.see.text import SMALL, text_width
from tpucc.training.roles import Parts, Role, Update
from tpucc.training.step import bytes_of

KEY = "train"
READABLE = 24
"""Boxes that the forward part may have before it is collapsed."""
COLUMNS = ((Role.FORWARD, Role.STATISTICS), (Role.BACKWARD, None), (Role.OPTIMIZER, Role.REDUCE))
"""The roles of the operators in each column."""
SHOWN = 3
"""Weights of a box that are named."""
SUBTITLE = (
    "Gradients stand beside the operator whose rule made them. Arrows from left to right are kept activations; double boxes open, and a "
    "bar has the colours of their operators, by number."
)
GAP, STACKED, COLUMN_GAP, LANE, PAD, HEAD = 30.0, 8.0, 76.0, 14.0, 14.0, 24.0
"""Pixels between rows, between boxes of a row, between columns, between parallel arrows, around a column, and above it for its name."""


@dataclass(frozen=True)
class StepPicture:
    """The diagram with the places of its boxes; for each box the nodes of the step graph that it stands for."""

    diagram: Diagram
    layout: Layout
    members: tuple[tuple[str, ...], ...]


def step_picture(parts: Parts, name: str, optimizer: str, source: str) -> StepPicture:
    """The picture of a step of the model `name` with this optimizer, from the text `source`."""
    return _Drawing(parts, name, optimizer, source).draw()


@dataclass
class _Row:
    """One box of the forward part: the nodes that it stands for, the states that it is the first to read, and the boxes beside it, by
    number."""

    nodes: tuple[str, ...]
    box: Box
    states: tuple[str, ...] = ()
    small: int = -1
    forward: int = -1
    backward: int = -1
    updates: list[int] = field(default_factory=list)


class _Drawing:
    def __init__(self, parts: Parts, name: str, optimizer: str, source: str) -> None:
        self._parts, self._name, self._optimizer, self._source = parts, name, optimizer, source
        self._graph = parts.graph
        self._boxes: list[Box] = []
        self._members: list[tuple[str, ...]] = []
        self._home: dict[str, int] = {}
        self._shared = -1

    def draw(self) -> StepPicture:
        rows = self._rows()
        for row in rows:
            row.forward = self._add(row.box, row.nodes)
        for row in reversed(rows):
            row.backward = self._backward(row)
        self._updates(rows)
        for row in rows:
            row.small = self._states(row)
        edges = self._edges()
        parts = self._parts
        clusters = [Cluster(self._column(*roles), layer=False) for roles in COLUMNS]
        kept = counted(len(parts.kept), "value")
        title = f"A training step of {self._name} keeps {kept}, {size(parts.kept_bytes)}, for its backward part"
        diagram = Diagram(KEY, "operator", title, SUBTITLE, tuple(self._boxes), tuple(edges), tuple(clusters))
        return StepPicture(diagram, _Places(diagram, rows, self._shared).layout(), tuple(self._members))

    def _column(self, own: Role, other: Role | None) -> str:
        """The title of a column: `optimizer · 79 operators`, or `optimizer · 79, all-reduce · 7` where the step has both."""
        count = self._parts.count
        if other is None or not count(other):
            return f"{own} · {counted(count(own), 'operator')}"
        return f"{own} · {count(own):,}, {other} · {count(other):,}"

    def _rows(self) -> list[_Row]:
        """The boxes of the forward part in order, each with the states that it is the first to read."""
        known = {node.name for node in self._parts.states}
        read: set[str] = set()
        rows = self._in_order(list(self._forward()))
        for row in rows:
            names = dict.fromkeys(operand for name in row.nodes for operand in self._graph[name].operands)
            row.states = tuple(name for name in names if name in known and name not in read)
            read.update(names)
        return rows

    def _forward(self) -> Iterator[_Row]:
        """The graph of the loss, collapsed where it is large; inputs stay as they are."""
        whole = operator_diagram(self._parts.loss)
        inputs = {node.name for node in self._parts.loss.inputs}
        ends = inputs | {"output"}
        full = tuple(replace(box, outside=not box.small and not ends.isdisjoint((box.name, box.title))) for box in whole.boxes)
        diagram = replace(whole, boxes=full, source=self._source)
        picture = collapse(diagram, READABLE)
        for box, members in zip(picture.diagram.boxes, picture.members, strict=True):
            nodes = tuple(full[index].name for index in members if not full[index].small and full[index].name in self._graph.by_name)
            if nodes and not box.small:
                box = replace(box, cluster=0, outside=False, details=self._details(box, nodes))
                yield _Row(nodes, self._coloured(box, nodes))

    def _in_order(self, rows: Sequence[_Row]) -> list[_Row]:
        """An input comes just before the first box that reads it."""
        place = {name: index for index, row in enumerate(rows) for name in row.nodes}

        def key(index: int) -> float:
            (name, *others) = rows[index].nodes
            if others or not self._graph[name].is_input:
                return index
            return min((place[user.name] for user in self._graph.users[name] if user.name in place), default=0) - 0.5

        return [rows[index] for index in sorted(range(len(rows)), key=key)]

    def _details(self, box: Box, nodes: Sequence[str]) -> tuple[str, ...]:
        kept = sum(bytes_of(node) for node in self._parts.kept if node.name in nodes)
        loss = ["the loss"] if self._parts.loss_value in nodes else []
        return (*box.details, *loss, *([f"keeps {size(kept)}"] if kept else []))

    def _coloured(self, box: Box, nodes: Iterable[str]) -> Box:
        """The box with the kinds of these nodes, by their number."""
        shares = shares_of((self._kind_of(self._graph[name]), 1) for name in nodes)
        return replace(box, kind=largest(shares), shares=shares if len(shares) > 1 else ())

    def _kind_of(self, node: Node) -> Kind:
        """The kind of a node on a machine that trains, where the host computes nothing: only inputs are the host's."""
        if "conv2d" in node.op:
            return Kind.MATRIX
        kind = kind_of(node.op)
        return Kind.VECTOR if kind is Kind.HOST and not node.is_input else kind

    def _add(self, box: Box, nodes: Sequence[str]) -> int:
        self._home.update(dict.fromkeys(nodes, len(self._boxes)))
        self._boxes.append(box)
        self._members.append(tuple(nodes))
        return len(self._boxes) - 1

    def _box(self, title: str, details: tuple[str, ...], nodes: Sequence[str], cluster: int) -> Box:
        origins = tuple(dict.fromkeys(self._graph[name].origin for name in nodes))
        return self._coloured(Box(title, Kind.VECTOR, details, cluster, origins=origins, stands_for=len(nodes), name=title), nodes)

    def _backward(self, row: _Row) -> int:
        made = (name for each in (*row.nodes, *row.states) for name in self._parts.backward.get(each, ()))
        nodes = tuple(name for name in made if name not in self._home)
        if not nodes:
            return -1
        operators = [self._graph[name].op for name in nodes]
        title = f"gradient{'s' if len(row.nodes) > 1 else ''} of {row.box.title}"
        which = row.box.details[:1] if row.box.stands_for > 1 else ()
        return self._add(self._box(title, (*which, *_summary(operators)), nodes, 1), nodes)

    def _updates(self, rows: Sequence[_Row]) -> None:
        """The weights' updates, beside the boxes that make their gradients; and a box for what they share."""
        if self._parts.shared:
            names = listed(self._parts.schedule)
            self._shared = self._add(self._box("step size", ((names,) if names else ()), self._parts.shared, 2), self._parts.shared)
        for row in rows:
            own = [update for update in self._parts.updates if self._home.get(update.gradient) == row.backward >= 0]
            chosen = [own] if len(row.nodes) > 1 and own else [[update] for update in own]
            row.updates = [self._update(each) for each in chosen]

    def _update(self, updates: Sequence[Update]) -> int:
        nodes = [name for update in updates for name in update.nodes]
        names = listed([update.key for update in updates])
        title = names if len(names) <= MAX_NAME // 2 or len(updates) == 1 else counted(len(updates), "weight")
        reduced = sum(self._parts.roles[name] is Role.REDUCE for name in nodes)
        how = f"{self._optimizer}, {counted(len(nodes) - reduced, 'operator')}"
        box = self._box(f"next {title}", (*([str(Role.REDUCE)] if reduced else []), how), nodes, 2)
        return self._add(replace(box, kind=Kind.VECTOR, shares=()), nodes)

    def _states(self, row: _Row) -> int:
        """The small box of the weights that a box reads."""
        found = dict.fromkeys(
            operand for name in row.nodes for operand in self._graph.operands(self._graph[name]) if operand.op in CONSTANTS
        )
        given = [node for node in found if not hasattr(node.attributes, "value")]
        if not given:
            return -1
        words = tuple(map(constant_label, given)) if len(given) <= SHOWN else (counted(len(given), "weight"),)
        origins = tuple(dict.fromkeys(node.origin for node in given))
        return self._add(Box(words[0], Kind.WEIGHTS, words[1:], beside=row.forward, origins=origins), ())

    def _edges(self) -> Iterator[Edge]:
        """One edge for all values between two boxes."""
        between: dict[tuple[int, int], dict[str, Node]] = {}
        for node in self._graph:
            head = self._home.get(node.name, -1)
            for operand in self._graph.operands(node) if head >= 0 else ():
                tail = self._home.get(operand.name, -1)
                if tail >= 0 and tail != head:
                    between.setdefault((tail, head), {})[operand.name] = operand
        for ends, values in between.items():
            first = next(iter(values.values()))
            yield Edge(*ends, edge_label(first.type) if len(values) == 1 else (counted(len(values), "value"),))
        for index, box in enumerate(self._boxes):
            if box.small:
                yield Edge(index, box.beside)


def _summary(operators: Sequence[str]) -> tuple[str, ...]:
    """`2 transpose, 2 matmul`; long names in a line each."""
    parts = [name if times == 1 else f"{times} {name}" for name, times in Counter(operators).items()]
    parts = [*parts[:3], *(["…"] if len(parts) > 3 else [])]
    words = ", ".join(parts)
    return (words,) if len(words) <= MAX_NAME else tuple(parts)


class _Places:
    """Where the boxes of a step stand: columns for weights, the forward part, its gradients and the optimizer; a row for each box of the
    forward part."""

    def __init__(self, diagram: Diagram, rows: Sequence[_Row], shared: int) -> None:
        self._diagram, self._owners = diagram, diagram.owners
        cells = [[[row.small], [row.forward], [row.backward], row.updates] for row in rows]
        cells = [[[], [], [], [shared]], *cells] if shared >= 0 else cells
        lines = [[[index for index in cell if index >= 0] for cell in row] for row in cells]
        self._rects = dict(self._boxes(lines))
        self._lanes = [self._lanes_of(column) for column in range(len(COLUMNS))]
        room = LANE * len({*self._lanes[1].values()})
        self._rects = {index: rect.moved(room, 0) if self._owners[index] == 2 else rect for index, rect in self._rects.items()}

    def _boxes(self, lines: Sequence[Sequence[Sequence[int]]]) -> Iterator[tuple[int, Rect]]:
        """Each box with its place. Those of a row have their middles on one line; those of a cell stand one below the other."""
        sizes = [box.size for box in self._diagram.boxes]
        middles, right = list[float](), 0.0
        for column, gap in enumerate((18.0, COLUMN_GAP, COLUMN_GAP, 0.0)):
            width = max((sizes[index][0] for line in lines for index in line[column]), default=0.0)
            middles.append(right + width / 2)
            right += width + gap
        top = 8.0
        for line in lines:
            heights = [sum(sizes[index][1] + STACKED for index in cell) - STACKED for cell in line]
            for middle, cell, height in zip(middles, line, heights, strict=True):
                y = top + (max(heights) - height) / 2
                for index in cell:
                    yield index, centred(middle, y + sizes[index][1] / 2, sizes[index])
                    y += sizes[index][1] + STACKED
            top += max(heights) + GAP

    def layout(self) -> Layout:
        routes = tuple(self._route(number, edge) for number, edge in enumerate(self._diagram.edges))
        bottom, frames = max(rect.bottom for rect in self._rects.values()), []
        for cluster in range(len(COLUMNS)):
            area = hull([*self._column(cluster), *(route.area for route in routes if self._inside(route.edge, cluster))])
            named = area.left - PAD + text_width(self._diagram.clusters[cluster].label, SMALL, bold=True) + 2 * PAD
            right = max(area.right + PAD, named if cluster == 2 else min(named, area.right + COLUMN_GAP / 2))
            if self._column(cluster):
                frames.append(Frame(cluster, Rect(area.left - PAD, -HEAD - PAD / 2, right, bottom + PAD)))
        return Layout(tuple(self._rects[index] for index in range(len(self._diagram.boxes))), routes, tuple(frames))

    def _column(self, column: int) -> list[Rect]:
        return [rect for index, rect in self._rects.items() if self._owners[index] == column]

    def _inside(self, number: int, column: int) -> bool:
        edge = self._diagram.edges[number]
        return self._owners[edge.tail] == self._owners[edge.head] == column

    def _lanes_of(self, column: int) -> dict[int, int]:
        """For each box of a column from which a value goes past others, the lane in which it does: values of one box share one."""
        spans: dict[int, tuple[float, float]] = {}
        for number, edge in enumerate(self._diagram.edges):
            if self._inside(number, column) and not self._adjacent(edge):
                ends = [self._rects[index].middle[1] for index in (edge.tail, edge.head)]
                low, high = spans.get(edge.tail, (ends[0], ends[0]))
                spans[edge.tail] = min(low, *ends), max(high, *ends)
        taken: list[list[tuple[float, float]]] = []
        found = {}
        for tail, (low, high) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
            found[tail] = lane = next((n for n, own in enumerate(taken) if all(high < a or b < low for a, b in own)), len(taken))
            taken += [[]] if lane == len(taken) else []
            taken[lane].append((low, high))
        return found

    def _adjacent(self, edge: Edge) -> bool:
        """Whether nothing of the same column stands between two boxes."""
        low, high = sorted(self._rects[index].middle[1] for index in (edge.tail, edge.head))
        others = ((index, rect.middle[1]) for index, rect in self._rects.items() if self._owners[index] == self._owners[edge.tail])
        return not any(low < middle < high and not self._diagram.boxes[index].small for index, middle in others)

    def _route(self, number: int, edge: Edge) -> Route:
        """Across from column to column; within one down or up, past boxes between: left of the forward part, right of the others."""
        tail, head, column, other = *map(self._with_shadow, (edge.tail, edge.head)), self._owners[edge.tail], self._owners[edge.head]
        if self._diagram.boxes[edge.tail].small or column != other:
            return Route(number, _across(self._rects[edge.tail], tail.right, self._rects[edge.head], (column, other) == (0, 1)))
        if self._adjacent(edge):
            down, x = tail.middle[1] < head.middle[1], self._rects[edge.tail].middle[0]
            begin, end = (tail.bottom, head.top) if down else (tail.top, head.bottom)
            label = centred(x + 3 + edge.size[0] / 2, (begin + end) / 2, edge.size) if edge.label else None
            return Route(number, ((x, begin), (x, end)), label=label)
        aside, own = LANE * (self._lanes[column][edge.tail] + 1), self._column(column)
        if column == 0:
            x, start, stop = min(rect.left for rect in own) - aside, (tail.left, tail.bottom - 8), (head.left, head.top + 8)
        else:
            x, start, stop = max(rect.right for rect in own) + aside, (tail.right, tail.top + 8), (head.right, head.bottom - 8)
        return Route(number, (start, (x, start[1]), (x, stop[1]), stop))

    def _with_shadow(self, index: int) -> Rect:
        """A box with the box behind it, where it stands for several."""
        rect, behind = self._rects[index], 4.0 if self._diagram.boxes[index].stands_for > 1 else 0.0
        return Rect(rect.left, rect.top, rect.right + behind, rect.bottom + behind)


def _across(tail: Rect, right: float, head: Rect, kept: bool) -> tuple[Point, ...]:
    """From the right of one box to the left of another; a kept activation leaves and enters on the side of the other one."""
    start, end = tail.middle[1], head.middle[1]
    if kept and abs(start - end) > 1:
        down = 8 if end > start else -8
        start, end = start + down, max(head.top + 5, min(head.bottom - 5, end - down))
    return (right, start), (head.left, end)
