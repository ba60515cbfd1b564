"""The graph after each pass, as lines of text, with what the pass took away and what it added.

A line stands once in a graph, as names do: which lines stayed is a longest increasing subsequence, found in n log n. A line that was
taken away is shown before the next one that stayed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tpucc.diagnostics import Origin, Span, printable
from tpucc.ir import Graph, Node
from tpucc.ir.literals import DataWriter
from tpucc.ir.printer import print_node
from tpucc.see.page.columns import deltas


class Origins:
    """Gives each origin a number. The page says of everything only the numbers of its origins."""

    def __init__(self) -> None:
        self._numbers: dict[Origin, int] = {}
        self._spans: dict[Span, int] = {}

    def number(self, origin: Origin) -> int:
        """The number of an origin, which it gets when it is first asked for."""
        return self._numbers.setdefault(origin, len(self._numbers))

    def payload(self) -> list[dict[str, Any]]:
        """For each origin its lines, its spans and calls, of which equal ones have one number, and the pass that made it."""
        return [
            {
                "lines": sorted(origin.lines),
                "line": origin.line,
                "spans": [self._span(span) for span in origin.spans],
                "calls": [self._span(span) for span in origin.calls],
                "by": printable(origin.made_by),
            }
            for origin in self._numbers
        ]

    def _span(self, span: Span) -> int:
        return self._spans.setdefault(span, len(self._spans))


LONGEST = 300
"""Characters of a line; the arrays in some are long."""
KEPT, ADDED, REMOVED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage by its name, what it does in a line, and the graph that it leaves."""

    name: str
    summary: str
    graph: Graph


class Lines:
    """The different texts of all stages, each once, and the lines: a text, and the origin of its node.

    A pass may give a node another origin and leave its text: such lines are two, but equal for what changed.
    """

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._data = DataWriter()
        self._of_node: dict[int, int] = {}
        self._texts: dict[str, int] = {}
        self._lines: dict[tuple[int, int], int] = {}
        self.text: list[int] = []
        """For each line the number of its text."""

    @property
    def texts(self) -> list[str]:
        """The texts by their numbers."""
        return list(self._texts)

    def of(self, graph: Graph) -> list[int]:
        """The numbers of a graph's lines, in its order."""
        return [self._number(node) for node in graph]

    def payload(self) -> dict[str, Any]:
        """All texts, and for each line the numbers of its text and of its origin."""
        return {"texts": "\n".join(self._texts), "text": deltas(self.text), "origin": deltas([origin for _, origin in self._lines])}

    def _number(self, node: Node) -> int:
        """A pass leaves most nodes as they are, and the very same, whose graphs are there until the end: those are not printed again."""
        if id(node) not in self._of_node:
            self._of_node[id(node)] = self._new(node)
        return self._of_node[id(node)]

    def _new(self, node: Node) -> int:
        shown = print_node(node, self._data, origins=False)
        text = self._texts.setdefault(shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…", len(self._texts))
        line = self._lines.setdefault((text, self._origins.number(node.origin)), len(self._lines))
        if line == len(self.text):
            self.text.append(text)
        return line


def stages_payload(stages: Sequence[Stage], origins: Origins) -> dict[str, Any]:
    """The stages that changed something: `at` is the number among all stages, `rows` is 3 * line + (0 kept, 1 added, 2 removed), in the
    order of reading. All lines of the first stage count as kept."""
    lines = Lines(origins)
    shown: list[dict[str, Any]] = []
    for at, rows in _changed(stages, lines):
        kinds = [kind if shown else KEPT for _, kind in rows]
        added, removed = kinds.count(ADDED), kinds.count(REMOVED)
        text = {"name": printable(stages[at].name), "summary": printable(stages[at].summary)}
        sizes = {"nodes": len(rows) - removed, "added": added, "removed": removed}
        numbers = [3 * line + kind for (line, _), kind in zip(rows, kinds, strict=True)]
        shown.append({"at": at, **text, **sizes, "rows": deltas(numbers)})
    return {**lines.payload(), "shown": shown, "unchanged": len(stages) - len(shown)}


def changes(stages: Sequence[Stage]) -> Iterator[tuple[Stage, list[tuple[str, int]]]]:
    """Each stage that changed its graph, the first one among them, with the lines that it `ADDED` and those that it `REMOVED`."""
    lines = Lines(Origins())
    for at, rows in _changed(stages, lines):
        texts = lines.texts
        yield stages[at], [(texts[lines.text[line]], kind) for line, kind in rows if kind != KEPT]


def _changed(stages: Sequence[Stage], lines: Lines) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The number of each stage that changed something, the first one among them, and its lines with those that it took away: what became
    of each, in the order of reading."""
    before: list[int] = []
    for at, stage in enumerate(stages):
        if at and stage.graph is stages[at - 1].graph:
            continue
        after = lines.of(stage.graph)
        rows = _compared(before, after, lines.text)
        before = after
        if not at or any(kind != KEPT for _, kind in rows):
            yield at, rows


def _compared(before: Sequence[int], after: Sequence[int], text: Sequence[int]) -> list[tuple[int, int]]:
    """The lines of both, those whose text was kept once, as they are now. A line that moved was taken away and added."""
    place = {text[line]: index for index, line in enumerate(after)}
    steady = _steady([text[line] for line in before], place)
    rows: list[tuple[int, int]] = []
    at = 0
    for line in before:
        if text[line] not in steady:
            rows.append((line, REMOVED))
            continue
        now = place[text[line]]
        rows += [(other, ADDED) for other in after[at:now]]
        rows.append((after[now], KEPT))
        at = now + 1
    return [*rows, *((line, ADDED) for line in after[at:])]


def _steady(before: Sequence[int], place: dict[int, int]) -> set[int]:
    """As many texts of both as possible whose order is the same in both."""
    ends: list[int] = []  # the least place at which a sequence of each length ends
    chain: list[tuple[int, int]] = []  # for each text of both: itself, and the one before it in the longest sequence that it ends
    tops: list[int] = []  # which entry of the chain that is, for each length
    for item in before:
        if item in place:
            length = bisect_left(ends, place[item])
            chain.append((item, tops[length - 1] if length else -1))
            ends[length : length + 1] = [place[item]]
            tops[length : length + 1] = [len(chain) - 1]
    kept: set[int] = set()
    entry = tops[-1] if tops else -1
    while entry >= 0:
        item, entry = chain[entry]
        kept.add(item)
    return kept
