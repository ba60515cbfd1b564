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
from tpucc.training.roles import Parts, Role, Update
from tpucc.training.step import bytes_of
from tpucc.viz.diagrams.calls import by_calls, line_of
from tpucc.viz.diagrams.collapse import collapse
from tpucc.viz.diagrams.diagram import Box, Cluster, Diagram, Edge, largest, shares_of
from tpucc.viz.diagrams.layout import Frame, Layout, Route
from tpucc.viz.diagrams.operators import CONSTANTS, constant_label, edge_label, kind_of, operator_diagram
from tpucc.viz.palette import Kind
from tpucc.viz.rect import Point, Rect, centred, hull
from tpucc.viz.text import SMALL, text_width

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
GAP, COLUMN_GAP, LANE, PAD, HEAD = 30.0, 76.0, 14.0, 14.0, 24.0
"""Pixels between rows, between columns, between parallel arrows, around a column, and above it for its name."""


@dataclass(frozen=True)
class StepPicture:
    """The diagram with the places of its boxes; for each box the nodes of the step graph that it stands for."""

    diagram: Diagram
    layout: Layout
    members: tuple[tuple[str, ...], ...]


def step_picture(parts: Parts, name: str, optimizer: str) -> StepPicture:
    """The picture of a step of the model `name` with this optimizer."""
    return _Drawing(parts, name, optimizer).draw()


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
    def __init__(self, parts: Parts, name: str, optimizer: str) -> None:
        self._parts, self._name, self._optimizer = parts, name, optimizer
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
        diagram = replace(whole, boxes=full)
        picture = collapse(diagram, READABLE)
        if any(_is_cut(diagram, members, times) for members, times in zip(picture.members, picture.repeats, strict=True)):
            diagram = by_calls(diagram, self._parts.loss, READABLE)
            picture = collapse(diagram, READABLE)
        for box, members, times in zip(picture.diagram.boxes, picture.members, picture.repeats, strict=True):
            nodes = tuple(full[index].name for index in members if not full[index].small and full[index].name in self._graph.by_name)
            if _is_cut(diagram, members, times):
                box = replace(box, title=f"{box.title}{_lines(full[index] for index in members)}")
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
        """As on a machine that trains: there are no operators of the host but inputs."""
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
        return self._add(self._box(title, _summary(operators), nodes, 1), nodes)

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


def _is_cut(diagram: Diagram, members: Sequence[int], times: int) -> bool:
    """Whether a box stands for several that are neither a layer nor periods: for as many as were too many."""
    places = {diagram.boxes[index].cluster for index in members}
    return len(members) > 1 and times == 1 and (len(places) > 1 or -1 in places)


def _lines(boxes: Iterable[Box]) -> str:
    """` · lines 17–19`; nothing where the source has none."""
    lines = {line for box in boxes if (line := line_of(box))}
    if len(lines) < 2:
        return "".join(f" · line {line}" for line in lines)
    return f" · lines {min(lines)}–{max(lines)}"


def _summary(operators: Sequence[str]) -> tuple[str, ...]:
    """`2 transpose, 2 matmul`; long names in a line each."""
    parts = [name if times == 1 else f"{times} {name}" for name, times in Counter(operators).items()]
    parts = [*parts[:3], *(["…"] if len(parts) > 3 else [])]
    words = ", ".join(parts)
    return (words,) if len(words) <= MAX_NAME else tuple(parts)


class _Places:
    """Where the boxes of a step stand: a row for each box of the forward part, three columns."""

    def __init__(self, diagram: Diagram, rows: Sequence[_Row], shared: int) -> None:
        self._diagram, self._rows, self._shared = diagram, rows, shared
        self._rects: dict[int, Rect] = {}
        self._lane: list[dict[int, int]] = []

    def layout(self) -> Layout:
        self._put_boxes()
        self._lane = [self._lanes(column) for column in (0, 1)]
        room = LANE * len(set(self._lane[1].values()))
        self._rects = {n: rect.moved(room, 0) if self._diagram.owners[n] == 2 else rect for n, rect in self._rects.items()}
        routes = tuple(self._routes())
        frames = []
        for cluster in range(3):
            own = [rect for index, rect in self._rects.items() if self._diagram.owners[index] == cluster]
            lanes = [route.area for route in routes if self._inside(route.edge, cluster)]
            if own:
                area = hull([*own, *lanes])
                named = area.left - PAD + text_width(self._diagram.clusters[cluster].label, SMALL, bold=True) + 2 * PAD
                right = max(area.right + PAD, named if cluster == 2 else min(named, area.right + COLUMN_GAP / 2))
                frames.append(Frame(cluster, Rect(area.left - PAD, -HEAD - PAD / 2, right, self._bottom + PAD)))
        return Layout(tuple(self._rects[index] for index in range(len(self._diagram.boxes))), routes, tuple(frames))

    def _inside(self, number: int, cluster: int) -> bool:
        edge = self._diagram.edges[number]
        return self._diagram.owners[edge.tail] == self._diagram.owners[edge.head] == cluster

    def _edge_of(self, index: int) -> Rect:
        """A box with the box behind it, where it stands for several."""
        rect, behind = self._rects[index], 4.0 if self._diagram.boxes[index].stands_for > 1 else 0.0
        return Rect(rect.left, rect.top, rect.right + behind, rect.bottom + behind)

    def _put_boxes(self) -> None:
        boxes, rows = self._diagram.boxes, self._rows
        widths = [
            max([boxes[index].size[0] for index in column if index >= 0], default=0.0)
            for column in (
                [row.small for row in rows],
                [row.forward for row in rows],
                [row.backward for row in rows],
                [*(n for row in rows for n in row.updates), self._shared],
            )
        ]
        forward = widths[0] + 18 + widths[1] / 2 if widths[0] else widths[1] / 2
        backward = forward + widths[1] / 2 + COLUMN_GAP + widths[2] / 2
        last = backward + widths[2] / 2 + COLUMN_GAP + widths[3] / 2
        y = 8.0
        if self._shared >= 0:
            self._rects[self._shared] = centred(last, y + boxes[self._shared].size[1] / 2, boxes[self._shared].size)
        taken = y + (boxes[self._shared].size[1] + GAP / 2 if self._shared >= 0 else 0.0)
        for row in rows:
            beside = [boxes[index].size[1] for index in row.updates]
            stack = sum(beside) + 8.0 * (len(beside) - 1) if beside else 0.0
            height = max(boxes[index].size[1] for index in (row.small, row.forward, row.backward) if index >= 0)
            middle = max(y + height / 2, taken + stack / 2 if beside else 0.0)
            self._rects[row.forward] = centred(forward, middle, boxes[row.forward].size)
            if row.small >= 0:
                size = boxes[row.small].size
                self._rects[row.small] = centred(forward - widths[1] / 2 - 18 - size[0] / 2, middle, size)
            if row.backward >= 0:
                self._rects[row.backward] = centred(backward, middle, boxes[row.backward].size)
            top = middle - stack / 2
            for index in row.updates:
                self._rects[index] = centred(last, top + boxes[index].size[1] / 2, boxes[index].size)
                top += boxes[index].size[1] + 8.0
            y = max(middle + height / 2 + GAP, middle + stack / 2 + 8.0)
            taken = top if beside else taken
        self._bottom = max(rect.bottom for rect in self._rects.values())

    def _routes(self) -> Iterator[Route]:
        for number, edge in enumerate(self._diagram.edges):
            tail, head = self._edge_of(edge.tail), self._edge_of(edge.head)
            columns = self._diagram.owners[edge.tail], self._diagram.owners[edge.head]
            if self._diagram.boxes[edge.tail].small or columns[0] != columns[1]:
                yield Route(number, _across(self._rects[edge.tail], tail.right, self._rects[edge.head], columns == (0, 1)))
            elif columns[0] == 2:
                yield self._bus(number, tail, head)
            elif self._adjacent(edge):
                yield self._vertical(number, edge, tail, head)
            else:
                yield self._detour(number, edge, tail, head)

    def _lanes(self, column: int) -> dict[int, int]:
        """For each box of a column from which a value goes past others, the lane in which it does: values of one box share one."""
        spans: dict[int, tuple[float, float]] = {}
        for edge in self._diagram.edges:
            if self._diagram.owners[edge.tail] == self._diagram.owners[edge.head] == column and not self._adjacent(edge):
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
        tail, head = self._rects[edge.tail], self._rects[edge.head]
        low, high = sorted((tail.middle[1], head.middle[1]))
        owners = self._diagram.owners
        return not any(
            low < rect.middle[1] < high
            for index, rect in self._rects.items()
            if owners[index] == owners[edge.tail] and not self._diagram.boxes[index].small
        )

    def _vertical(self, number: int, edge: Edge, tail: Rect, head: Rect) -> Route:
        down = tail.middle[1] < head.middle[1]
        x = self._rects[edge.tail].middle[0]
        ends = ((x, tail.bottom if down else tail.top), (x, head.top if down else head.bottom))
        width, height = edge.size
        middle = (ends[0][1] + ends[1][1]) / 2
        label = Rect(x + 3, middle - height / 2, x + 3 + width, middle + height / 2) if edge.label else None
        return Route(number, ends, label=label)

    def _detour(self, number: int, edge: Edge, tail: Rect, head: Rect) -> Route:
        """Past the boxes between: to the left of the forward column, to the right of the backward one."""
        column = self._diagram.owners[edge.tail]
        aside = LANE * (self._lane[column][edge.tail] + 1)
        own = [rect for index, rect in self._rects.items() if self._diagram.owners[index] == column]
        if column == 0:
            x, start, end = min(rect.left for rect in own) - aside, (tail.left, tail.bottom - 8), (head.left, head.top + 8)
        else:
            x, start, end = max(rect.right for rect in own) + aside, (tail.right, tail.top + 8), (head.right, head.bottom - 8)
        return Route(number, (start, (x, start[1]), (x, end[1]), end))

    def _bus(self, number: int, tail: Rect, head: Rect) -> Route:
        """From what the updates share: one line down on the right of all of them."""
        x = max(rect.right for index, rect in self._rects.items() if self._diagram.owners[index] == 2) + LANE
        return Route(number, ((tail.right, tail.middle[1]), (x, tail.middle[1]), (x, head.middle[1]), (head.right, head.middle[1])))


def _across(tail: Rect, right: float, head: Rect, kept: bool) -> tuple[Point, ...]:
    """From the right of one box to the left of another; a kept activation leaves and enters on the side of the other one."""
    start, end = tail.middle[1], head.middle[1]
    if kept and abs(start - end) > 1:
        down = 8 if end > start else -8
        start, end = start + down, max(head.top + 5, min(head.bottom - 5, end - down))
    return (right, start), (head.left, end)
