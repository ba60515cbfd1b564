"""The operators of a graph in groups by the calls of the source: what one call of a `def` makes is a layer of the diagram."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from itertools import groupby

from tpucc.diagnostics import Span, counted
from tpucc.ir import Graph
from tpucc.viz.diagrams.diagram import Box, Cluster, Diagram
from tpucc.viz.diagrams.operators import weights_name

Calls = tuple[Span, ...]
"""The calls that led to an operator, the outermost first."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Boxes that become one, and the line of the call that made them; 0 without one."""

    boxes: list[int]
    line: int = 0


def by_calls(diagram: Diagram, graph: Graph, readable: int) -> Diagram:
    """The diagram of a graph's operators with calls as layers: the innermost calls that leave at most `readable` boxes, if any do.

    A call that makes more than half of the operators is none. Layers stay of which no operator is in a call. A call's group is a run of
    neighbours, so no value goes from it to another box and back.
    """
    calls = {index: _calls(diagram.boxes[index]) for index in diagram.main_boxes if not diagram.boxes[index].outside}
    depths = range(max(map(len, calls.values()), default=0), 0, -1)
    levels = [_runs({index: found[:depth] for index, found in calls.items()}) for depth in depths]
    fewest = min(levels, key=len, default=[])
    runs = next((level for level in levels if len(level) <= readable), fewest)
    called = {index for run in runs for index in run.boxes if run.line}
    groups = [run for run in runs if len(run.boxes) > 1] + _layers(diagram, calls.keys() - called)
    home = {index: number for number, group in enumerate(groups) for index in group.boxes}
    boxes = tuple(replace(box, cluster=home.get(index, -1)) for index, box in enumerate(diagram.boxes))
    return replace(diagram, boxes=boxes, clusters=tuple(_cluster(diagram, graph, group) for group in groups))


def line_of(box: Box) -> int:
    """The line of the operator itself; 0 when the source has none."""
    return next((span.line for origin in box.origins for span in origin.spans), 0)


def _calls(box: Box) -> Calls:
    return next((origin.calls[::-1] for origin in box.origins), ())


def _runs(calls: Mapping[int, Calls]) -> list[_Run]:
    """Neighbours of the same call; an operator of a `def` that has calls is alone."""
    outer = {found[:depth] for found in calls.values() for depth in range(len(found))}
    runs: list[_Run] = []
    for key, found in groupby(calls, lambda index: index if calls[index] in outer else calls[index]):
        boxes = list(found)
        if isinstance(key, int) or 2 * len(boxes) > len(calls):
            runs += [_Run([index]) for index in boxes]
        else:
            runs.append(_Run(boxes, key[-1].line))
    return runs


def _layers(diagram: Diagram, free: Set[int]) -> list[_Run]:
    """The layers that consist of these boxes alone."""
    found: dict[int, list[int]] = {}
    for index in diagram.main_boxes:
        found.setdefault(diagram.boxes[index].cluster, []).append(index)
    return [_Run(group, line_of(diagram.boxes[group[0]])) for cluster, group in found.items() if cluster >= 0 and free >= set(group)]


def _cluster(diagram: Diagram, graph: Graph, group: _Run) -> Cluster:
    name = weights_name(graph, [diagram.boxes[index].name for index in group.boxes]) or counted(
        len(group.boxes), diagram.noun_of(group.boxes)
    )
    return Cluster(f"{name} · line {group.line}" if group.line else name)
