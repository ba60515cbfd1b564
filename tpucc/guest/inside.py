"""What a child does for a pass or a stage of a file, as the compiler would in its own process; and a graph as values that travel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import chain, islice
from types import ModuleType
from typing import Any

import numpy as np

from tpucc.ir import Constant, Graph, Node
from tpucc.ir.attributes import non_default
from tpucc.ir.digests import digest_of
from tpucc.ir.literals import DataWriter
from tpucc.ir.node import Firing
from tpucc.ir.parser import parse_graph, parse_nodes
from tpucc.ir.printer import print_graph, print_node
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.passes.base import Context, GraphPass, with_options
from tpucc.plugins.brought import PARTS, attributes_of, defaults_of, passes_in, run_of
from tpucc.plugins.checked import rewritten, verify_rewritten
from tpucc.plugins.code import place_of


class _Constants:
    """Constants by their digests (`ir.digests.Known`)."""

    name = "the graph that the pass got"

    def __init__(self, data: Iterable[bytes]) -> None:
        self._data = {(digest_of(each), len(each)): each for each in data}

    def find(self, digest: str, size: int) -> bytes | None:
        return self._data.get((digest, size))


def graph_values(graph: Graph, before: Graph) -> dict[str, Any]:
    """A graph that was made of `before`, as values that travel."""
    nodes = [node for firing in graph.firings for node in (*firing.matched, *firing.made)]
    data, known = DataWriter(False), {id(constant.data) for constant in constants_of(before)}
    lines = [print_node(node, data) for node in nodes]
    new = [constant for constant in constants_of(chain(graph, nodes)) if id(constant.data) not in known]
    return {
        "text": print_graph(graph, with_data=False),
        "constants": [np.frombuffer(each.data.tobytes(), np.uint8) for each in new],
        "notes": list(graph.notes),
        "of": {node.name: node.of for node in graph if node.of},
        "firings": [[firing.rule, len(firing.matched), len(firing.made)] for firing in graph.firings],
        "fired": "\n".join([*lines, *data.sections()]),
    }


def graph_of(values: Mapping[str, Any], before: Graph) -> Graph:
    """The graph that `graph_values` has packed; nodes of `before` that are in it are the same objects. Raises `ProgramError` for a text
    that is no graph's, and other exceptions for values that aren't of this form."""
    known = _Constants([*(each.data.tobytes() for each in constants_of(before)), *(array.tobytes() for array in values["constants"])])
    graph, of = parse_graph(values["text"], "the graph of the pass", ATTRIBUTES, known), values["of"]
    nodes = iter(parse_nodes(values["fired"], ATTRIBUTES, known))
    firings = [Firing(str(rule), tuple(islice(nodes, matched)), tuple(islice(nodes, made))) for rule, matched, made in values["firings"]]
    own = (replace(node, of=str(of[node.name])) if node.name in of else node for node in graph)
    kept = tuple(_kept(node, before.by_name.get(node.name)) for node in own)
    return replace(graph, nodes=kept, notes=tuple(map(str, values["notes"])), firings=tuple(firings))


def _kept(node: Node, old: Node | None) -> Node:
    """The node, as the object that it was before where nothing of it has changed."""
    return old if old is not None and node == old and (node.origin, node.of) == (old.origin, old.of) else node


def constants_of(nodes: Iterable[Node]) -> Iterator[Constant]:
    """Every constant among the attributes of nodes."""
    return (value for node in nodes for _, value in non_default(node.attributes) if isinstance(value, Constant))


_passes: dict[str, list[Any]] = {}
"""The passes of each module: classes until they are made."""


def ready() -> None:
    """Answers once this process is there."""


def functions(module: ModuleType) -> dict[str, tuple[str, int]]:
    """Where each name of a module is written that can be called."""
    return {name: place_of(value) for name, value in vars(module).items() if callable(value)}


def passes(module: ModuleType) -> list[tuple[str, str, int]]:
    """The passes of a module: the name of each one's class, and the file and the line of its `run`."""
    found = _passes[module.__name__] = passes_in(module)
    return [(getattr(each, "__name__", type(each).__name__), *place_of(run_of(each))) for each in found]


def make(module: ModuleType, number: int) -> tuple[Any, dict[str, object]]:
    """Makes a pass with its default options, of its class; returns what it says of itself, and these."""
    made = _passes[module.__name__]
    step = made[number] = made[number] if type(made[number]) is GraphPass else made[number]()
    return attributes_of(step), defaults_of(step)


def no_pass(module: ModuleType) -> dict[str, Any]:
    """What a module has instead of a pass: the parts that its own classes lack, and its own functions."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    classes = {value.__name__: [part for part in PARTS if not hasattr(value, part)] for value in own if inspect.isclass(value)}
    return {"classes": classes, "functions": [value.__name__ for value in own if inspect.isfunction(value)]}


def run(module: ModuleType, number: int, values: Mapping[str, object], graph: Graph, context: Mapping[str, Any]) -> dict[str, Any] | None:
    """The graph that a pass makes, verified, as values that travel; None where it is the one that it was given."""
    step = with_options(_passes[module.__name__][number], values)
    return _made(lambda given: step.run(given, Context(**context)), graph)


def rewrite(module: ModuleType, name: str, graph: Graph) -> dict[str, Any] | None:
    """The graph that a function of the module makes, as `run` has it."""
    return _made(getattr(module, name), graph)


def _made(function: Callable[[Graph], Graph], graph: Graph) -> dict[str, Any] | None:
    for constant in constants_of(graph):
        constant.data.setflags(write=False)  # which pickle has forgotten
    result = rewritten(function, graph)
    if result is graph:
        return None
    verify_rewritten(result, graph)
    return graph_values(result, graph)


def stage(module: ModuleType, name: str, *arguments: Any) -> Any:
    """What a stage gives. It can read its arguments, not write them."""
    for value in arguments:
        for field in fields(value) if is_dataclass(value) else ():
            if isinstance(array := getattr(value, field.name), np.ndarray):
                array.setflags(write=False)
    found = getattr(module, name)(*arguments)
    return np.asarray(found) if hasattr(type(found), "__array__") else found
