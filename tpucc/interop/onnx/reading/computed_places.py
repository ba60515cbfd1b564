"""Numbers of rows or places that a network computes: what is to be done is the same, whichever node on their way can't be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpucc.diagnostics import listed
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode
from tpucc.interop.onnx.reading.files.problems import COMPUTED, INDICES, INTEGERS, named
from tpucc.interop.onnx.reading.files.tensors import BOOL, FLOATS
from tpucc.interop.onnx.reading.integers import INDICES as NUMBERED
from tpucc.interop.onnx.reading.operators.rows import Fact, names_with

MOVING = names_with(Fact.VIEW) | {"Concat", "Gather", "Split"}
"""Operators whose results are numbers of their operands."""
COMPUTING = (names_with(Fact.AXES) & names_with(Fact.EXACT)) - MOVING - names_with(Fact.REAL) | {"CumSum", "Mod"}
"""Operators that make other numbers of numbers of rows."""
PLACES = frozenset(["ArgMax", "ArgMin"])
UNREAD = frozenset(["CumSum", "Mod"])
"""Those of `COMPUTING` that are read of constants only."""


class ComputedPlaces:
    """Which nodes of a graph take rows or places by numbers that it computes."""

    def __init__(self, graph: OnnxGraph) -> None:
        self._inputs = {value.name for value in graph.inputs if value.type not in FLOATS}
        self._made = {name: node for node in graph.nodes for name in node.outputs}
        self._readers: dict[str, list[tuple[OnnxNode, int]]] = {}
        self._known = set(graph.constants)
        for node in graph.nodes:
            for place, name in enumerate(node.inputs):
                self._readers.setdefault(name, []).append((node, place))
            if all(name in self._known or not name for name in node.inputs):
                self._known.update(node.outputs)

    def help(self, node: OnnxNode, help: str) -> str:
        """What to do about a node that can't be read, instead of `help`, where it computes numbers of rows or places, or reads an input
        that others compute them of; else `help`."""
        if node.kind not in UNREAD and help not in (COMPUTED, INDICES, INTEGERS):
            return help
        inputs = sorted(self._sources(node))
        taking = next(self._taking(node.outputs), None)
        if taking is None and help == INDICES:
            computing = (reader for name in self._moved(inputs) for reader, _ in self._readers.get(name, ()) if reader.op in COMPUTING)
            taking = next((found for reader in computing for found in self._taking(reader.outputs)), None)
        if taking is None:
            return help
        of = f"what the network computes of {listed([named(name) for name in inputs])}" if inputs else "what the network computes"
        if taking.op == "OneHot" or taking.inputs[0] in self._known:
            rows = "sets ones" if taking.op == "OneHot" else "takes rows"
            return (
                f"{taking.title} ({taking.op}) {rows} by {of}: compute these numbers in your own program, and give them to the model as an "
                "input of integers"
            )
        return f"{taking.title} ({taking.op}) picks places by {of}: end the model before it, and pick them in your own program"

    def _taking(self, names: Iterable[str]) -> Iterator[OnnxNode]:
        """The nodes that take rows or places by these values, or by integers that are made of them."""
        seen, waiting = set[str](), list(names)
        while waiting:
            name = waiting.pop(0)
            if not name or name in seen:
                continue
            seen.add(name)
            for reader, place in self._readers.get(name, ()):
                if not reader.domain and NUMBERED.get(reader.op) == place:
                    yield reader
                elif _keeps_integers(reader):
                    waiting += reader.outputs

    def _moved(self, names: Iterable[str]) -> Iterator[str]:
        """These values, and what has their numbers."""
        seen, waiting = set[str](), list(names)
        while waiting:
            name = waiting.pop(0)
            if name not in seen:
                seen.add(name)
                yield name
                waiting += [made for reader, _ in self._readers.get(name, ()) if _keeps_numbers(reader) for made in reader.outputs]

    def _sources(self, node: OnnxNode) -> Iterator[str]:
        """The inputs of integers and booleans that a node's operands are made of."""
        seen, waiting = set[str](), list(node.inputs)
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._inputs:
                yield name
            before = self._made.get(name)
            if before is not None and (before.op == "Cast" or before.op in MOVING | COMPUTING | names_with(Fact.CONDITION) | PLACES):
                waiting += before.inputs


def _keeps_integers(node: OnnxNode) -> bool:
    return not node.domain and (node.op in COMPUTING or _keeps_numbers(node))


def _keeps_numbers(node: OnnxNode) -> bool:
    return not node.domain and (node.op in MOVING or (node.op == "Cast" and node.attributes.get("to") not in (BOOL, *FLOATS)))
