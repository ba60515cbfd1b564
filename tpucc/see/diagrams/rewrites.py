"""What a pass did to the graph, one rewrite at a time: the part of the graph that changed, before and after, with what is around it.

Where the pass is made of rules, a rewrite is one time that a rule fired: the nodes that it matched, and those that it made. Else it is what
hangs together of the nodes that went, came or read something else. Of rewrites that are alike the first one is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

from tpucc.ir import Graph
from tpucc.ir.literals import DataWriter
from tpucc.ir.printer import print_node
from tpucc.see.diagrams.collapse import sized
from tpucc.see.diagrams.diagram import Diagram
from tpucc.see.diagrams.insides import Period
from tpucc.see.diagrams.operators import CONSTANTS, operator_diagram

READABLE = 20
"""Boxes of a picture, without those around it."""
KINDS = 4
"""Rewrites of a pass that are drawn; those that are alike count as one."""
LARGEST = 3000
"""Nodes of a graph whose rewrites are looked for."""
BUDGET = 500
"""Boxes in all pictures of rewrites of a page."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewrite by its stage's number: the rule, if one made it; how many are alike; and the two parts, None where there is nothing, or
    nothing but constants."""

    stage: int
    rule: str
    alike: int
    before: Diagram | None
    after: Diagram | None


def rewrites(graphs: Sequence[Graph], budget: int = BUDGET) -> list[Rewrite]:
    """The rewrites between each graph and the next, as many as the budget of boxes allows."""
    found: list[Rewrite] = []
    drawn: dict[int, Diagram] = {}  # by the addresses of graphs, which `graphs` holds
    for stage, (old, new) in enumerate(pairwise(graphs), 1):
        if old is new or max(len(old.by_name), len(new.by_name)) > LARGEST:
            continue
        for rewrite in _between(stage, old, new, drawn):
            budget -= sum(len(part.boxes) for part in (rewrite.before, rewrite.after) if part is not None)
            if budget < 0:
                return found
            found.append(rewrite)
    return found


def _between(stage: int, old: Graph, new: Graph, drawn: dict[int, Diagram]) -> Iterator[Rewrite]:
    changed = _changed(old, new)
    if not changed or (old.by_name.keys() == new.by_name.keys() and 2 * len(changed) > len(new.by_name)):
        return  # such a pass notes something at every node, which the text says
    kinds: dict[tuple[str, str, str], list[Set[str]]] = {}
    for rule, group in _fired(new) or [("", group) for group in _groups(changed, old, new)]:
        kinds.setdefault((rule, _ops(group, old), _ops(group, new)), []).append(group)
    wholes = [drawn.get(id(graph)) or drawn.setdefault(id(graph), _plain(graph)) for graph in (old, new)]
    for number, ((rule, *_), alike) in enumerate(list(kinds.items())[:KINDS]):
        parts = [
            _part(whole, alike[0], f"rewrite-{stage}-{number}-{side}") for whole, side in zip(wholes, ("before", "after"), strict=True)
        ]
        if any(parts):
            yield Rewrite(stage, rule, len(alike), *parts)


def _changed(old: Graph, new: Graph) -> list[str]:
    """The names of the nodes that are in one graph alone, or whose text differs."""
    data = DataWriter()

    def same(name: str) -> bool:
        if name not in old.by_name or name not in new.by_name:
            return False
        first, second = old[name], new[name]
        return first is second or print_node(first, data, origins=False) == print_node(second, data, origins=False)

    return [name for name in dict.fromkeys([*old.by_name, *new.by_name]) if not same(name)]


def _fired(graph: Graph) -> list[tuple[str, Set[str]]]:
    """Each time that a rule fired: its name, and the nodes that it matched or made."""
    return [(each.rule, {node.name for node in (*each.matched, *each.made)}) for each in graph.firings]


def _groups(changed: Sequence[str], old: Graph, new: Graph) -> list[Set[str]]:
    """What hangs together of them by an edge in either graph, in order."""
    home: dict[str, set[str]] = {name: {name} for name in changed}
    for graph in (old, new):
        for name in filter(graph.by_name.__contains__, changed):
            for operand in graph[name].operands:
                if home.get(operand, home[name]) is not home[name]:
                    joined = home[operand] | home[name]
                    home.update(dict.fromkeys(joined, joined))
    return list({id(group): group for group in home.values()}.values())


def _ops(group: Set[str], graph: Graph) -> str:
    """What the nodes of a group do: equal for rewrites that are alike."""
    return " ".join(sorted(graph[name].op for name in group if name in graph.by_name))


def _plain(graph: Graph) -> Diagram:
    """The graph's diagram without clusters."""
    whole = operator_diagram(graph)
    return replace(whole, boxes=tuple(replace(box, cluster=-1) for box in whole.boxes), clusters=())


def _part(whole: Diagram, group: Set[str], key: str) -> Diagram | None:
    """The boxes of a group with what is around them; outputs count to what they read."""
    members = [index for index in whole.main_boxes if whole.boxes[index].called in group and whole.boxes[index].title not in CONSTANTS]
    if not members:
        return None
    part = Period(whole, members).part(key, key.rsplit("-", 1)[1]).diagram
    return next(sized(replace(part, subtitle=""), READABLE)).diagram
