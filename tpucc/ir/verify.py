"""The rules that every graph keeps, whatever its operators mean."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from itertools import islice

from tpucc.diagnostics import Diagnostic, ProgramError, did_you_mean, printable
from tpucc.ir.attributes import is_record
from tpucc.ir.codec import MAX_INTEGER_CHARACTERS, MOST_ERRORS
from tpucc.ir.constants import Constant
from tpucc.ir.dtypes import FORMATS
from tpucc.ir.graph import Graph
from tpucc.ir.literals import MAX_DEPTH
from tpucc.ir.node import Attributes, Node
from tpucc.ir.types import Range, TensorType

NODE_NAME = re.compile(r"[A-Za-z0-9_.]+", re.ASCII)
_TOO_LARGE: int = 10 ** (MAX_INTEGER_CHARACTERS - 1)
NEARBY = 500
"""Names that a misspelled one is compared with."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken rule: where (the index of a node, maybe of its operand, or of an output), and which name is to blame."""

    code: str
    message: str
    node: int | None = None
    operand: int | None = None
    output: int | None = None
    name: str = ""
    help: str = ""


def verify_graph(graph: Graph, changed: Collection[str] | None = None) -> None:
    """Raises `ProgramError` with the graph's first problems, if it has any; time is linear in the nodes.

    The order of definitions and uses is checked for all nodes, everything else only for those in `changed`: see `changed_nodes`.
    """
    found = [_diagnostic(graph, problem) for problem in islice(problems(graph, changed), MOST_ERRORS)]
    if found:
        raise ProgramError(found)


def changed_nodes(graph: Graph, before: Graph) -> frozenset[str]:
    """The nodes of which the rules may say something else than they did in `before`: new ones, and those that read a new one.

    A rule of a node looks at the node itself and at its operands. Where these are the same but for their places, it says the same.
    """
    new = {node.name for node in graph.nodes if not _is_same(node, before.by_name.get(node.name))}
    return frozenset(new.union(node.name for node in graph.nodes if not new.isdisjoint(node.operands)))


def _is_same(node: Node, before: Node | None) -> bool:
    if node is before or before is None:
        return node is before
    parts = (node.type is before.type, node.attributes is before.attributes, node.origin is before.origin)
    return all(parts) and (node.op, node.operands, node.holds) == (before.op, before.operands, before.holds)


def problems(graph: Graph, changed: Collection[str] | None = None) -> Iterator[Problem]:
    """Every broken rule, in the order of the text; `changed` as for `verify_graph`, all nodes unless said."""
    positions = {node.name: index for index, node in reversed(list(enumerate(graph.nodes)))}
    for index, node in enumerate(graph.nodes):
        if positions[node.name] != index:
            yield Problem("E0740", f"{node.name} is defined twice", index, name=node.name)
        yield from _operands(index, node, positions)
        if changed is None or node.name in changed:
            yield from _definition(index, node)
            yield from _content(index, node)
        yield from _place(index, node, graph)
    yield from _outputs(graph, positions)


def _definition(index: int, node: Node) -> Iterator[Problem]:
    if not NODE_NAME.fullmatch(node.name):
        message = f'"{printable(node.name)}" is not a name of a node: names have letters, digits, _ and .'
        yield Problem("E0747", message, index, name=node.name)
    if not node.origin:
        yield Problem("E0745", f"{node.name} has no origin: neither a place in the source nor a pass that made it", index, name=node.name)


def _operands(index: int, node: Node, positions: dict[str, int]) -> Iterator[Problem]:
    for place, name in enumerate(node.operands):
        defined = positions.get(name)
        if defined is None:
            message, near = f"{node.name} reads {name}, which no node defines", did_you_mean(name, islice(reversed(positions), NEARBY))
            yield Problem("E0741", message, index, place, name=name, help=near)
        elif defined >= index:
            yield Problem("E0741", f"{node.name} reads {name} before its definition", index, place, name=name)


def _content(index: int, node: Node) -> Iterator[Problem]:
    if (wrong := _type_problem(node.type)) is not None:
        yield Problem("E0746", f"{node.name}: {wrong}", index, name=node.name)
    for name, value in _values(node.attributes):
        if not _has_text(value):
            message = f"the attribute {name} of {node.name} is of a kind that graphs don't hold"
            yield Problem("E0748", message, index, name=node.name)


def _place(index: int, node: Node, graph: Graph) -> Iterator[Problem]:
    if node.place is None and graph.is_placed:
        message = f"nothing says whether the host or the device computes {node.name}, as is said of other nodes"
        help = f'give {node.name} the place of the node that it replaces, as in place=node.place, or place="host" or place="device"'
        yield Problem("E0749", message, index, name=node.name, help=help)


def _outputs(graph: Graph, positions: dict[str, int]) -> Iterator[Problem]:
    for field in ("name", "source"):
        if not isinstance(getattr(graph, field), str):
            yield Problem("E0747", f"the graph's {field} isn't a text")
    if not graph.outputs:
        yield Problem("E0742", f"the graph {graph.name} has no outputs")
    seen: set[str] = set()
    for index, output in enumerate(graph.outputs):
        if output.node not in positions:
            message = f"the output {output.name} is {output.node}, which no node defines"
            yield Problem("E0743", message, output=index, name=output.node, help=did_you_mean(output.node, islice(positions, NEARBY)))
        if output.name in seen:
            yield Problem("E0744", f"two outputs are named {output.name}", output=index, name=output.name)
        seen.add(output.name)


def _type_problem(type_: TensorType) -> str | None:
    if type_.dtype not in FORMATS:
        return f"{type_.dtype} isn't a type of elements; these are {', '.join(FORMATS)}"
    if not all(0 < size < 2**63 for size in type_.shape):
        return f"the sizes of {type_.brief} aren't all positive"
    if type_.range is not None and not -float("inf") < type_.range.low <= type_.range.high < float("inf"):
        return f"the range {type_.range} is empty or infinite"
    if type_.quantisation is not None and not 0 < type_.quantisation.scale < float("inf"):
        return f"the scale {type_.quantisation.scale!r} is not positive and finite"
    return None


def _values(attributes: Attributes) -> Iterator[tuple[str, object]]:
    return ((field.name, getattr(attributes, field.name)) for field in fields(attributes))


def _has_text(value: object, depth: int = 0) -> bool:
    if isinstance(value, int):
        return -_TOO_LARGE < value < _TOO_LARGE
    if value is None or isinstance(value, float | str | Range | Constant):
        return True
    if isinstance(value, tuple):
        return depth < MAX_DEPTH and all(_has_text(item, depth + 1) for item in value)
    return is_record(value) and depth < MAX_DEPTH and all(_has_text(part, depth + 1) for _, part in _values(value))


def _diagnostic(graph: Graph, problem: Problem) -> Diagnostic:
    origin = graph.nodes[problem.node].origin if problem.node is not None else None
    labels = origin.labels() if origin is not None else ()
    return Diagnostic(problem.code, problem.message, labels, (problem.help,) if problem.help else ())
