"""The graph after each pass, as lines of text, with what the pass took away and what it added.

A line stands once in a graph, as names do: which lines stayed is a longest increasing subsequence, found in n log n. A line that was
taken away is shown before the next one that stayed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tpucc.diagnostics import printable
from tpucc.ir.graph import Graph, Node
from tpucc.ir.literals import DataWriter
from tpucc.ir.printer import print_node
from tpucc.viz.page.columns import deltas
from tpucc.viz.page.origins import Origins

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
    """The different lines of all stages, each once, with the origin of its node."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._data = DataWriter()
        self._of_node: dict[int, int] = {}
        self._alive: list[Node] = []
        self._numbers: dict[str, int] = {}
        self._origin: list[int] = []

    def of(self, graph: Graph) -> list[int]:
        """The numbers of a graph's lines, in its order."""
        return [self._number(node) for node in graph]

    def payload(self) -> dict[str, Any]:
        return {"lines": "\n".join(self._numbers), "origin": deltas(self._origin)}

    def _number(self, node: Node) -> int:
        """A pass leaves most nodes as they are, and the very same: those are not printed again."""
        known = self._of_node.get(id(node))
        if known is None:
            self._alive.append(node)
            text = printable(print_node(node, self._data, origins=False))
            text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
            known = self._of_node[id(node)] = self._numbers.setdefault(text, len(self._numbers))
            if known == len(self._origin):
                self._origin.append(self._origins.number(node.origin))
        return known


def stages_payload(stages: Sequence[Stage], origins: Origins) -> dict[str, Any]:
    """The stages that changed something. `rows` is 3 * line + (0 kept, 1 added, 2 removed), in the order of reading."""
    lines = Lines(origins)
    before: list[int] = []
    shown: list[dict[str, Any]] = []
    graph: Graph | None = None
    for stage in stages:
        if stage.graph is graph:
            continue
        graph, after = stage.graph, lines.of(stage.graph)
        rows = _compared(before, after) if shown else [(line, KEPT) for line in after]
        counts = [sum(kind == wanted for _, kind in rows) for wanted in (ADDED, REMOVED)]
        if not shown or any(counts):
            text = {"name": printable(stage.name), "summary": printable(stage.summary)}
            sizes = {"nodes": len(after), "added": counts[0], "removed": counts[1]}
            shown.append({**text, **sizes, "rows": deltas([3 * line + kind for line, kind in rows])})
        before = after
    return {**lines.payload(), "shown": shown, "unchanged": len(stages) - len(shown)}


def _compared(before: Sequence[int], after: Sequence[int]) -> list[tuple[int, int]]:
    """The lines of both, kept ones once. A line that moved was taken away and added."""
    place = {line: index for index, line in enumerate(after)}
    steady = _steady(before, place)
    rows: list[tuple[int, int]] = []
    at = 0
    for line in before:
        if line not in steady:
            rows.append((line, REMOVED))
            continue
        rows += [(other, ADDED) for other in after[at : place[line]]]
        rows.append((line, KEPT))
        at = place[line] + 1
    return [*rows, *((line, ADDED) for line in after[at:])]


def _steady(before: Sequence[int], place: dict[int, int]) -> set[int]:
    """As many lines of both as possible whose order is the same in both."""
    ends: list[int] = []  # the least place at which a sequence of each length ends
    chain: list[tuple[int, int]] = []  # for each line of both: itself, and the one before it in the longest sequence that it ends
    tops: list[int] = []  # which entry of the chain that is, for each length
    for line in before:
        if line in place:
            length = bisect_left(ends, place[line])
            chain.append((line, tops[length - 1] if length else -1))
            ends[length : length + 1] = [place[line]]
            tops[length : length + 1] = [len(chain) - 1]
    kept: set[int] = set()
    entry = tops[-1] if tops else -1
    while entry >= 0:
        line, entry = chain[entry]
        kept.add(line)
    return kept
