"""What the pass `place` tells the user: which nodes the host computes although the device could seem to, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from tpucc.diagnostics import listed, some
from tpucc.ir import Graph, Node
from tpucc.ir.dataflow import Computed, leading_to, reached_from
from tpucc.ir.node import Side
from tpucc.ops.matmul import OP as matmul
from tpucc.passes.device_work import computes
from tpucc.passes.kept_layers import SHOWN, Layers
from tpucc.passes.layering.products import layer_name
from tpucc.passes.rewriter import is_product

KEPT = "kept in float32"
IDLE = "also without --keep"
NAMED = 3
"""Products that a note names; the others are counted. Of layers that were asked for there are as many as messages name (`SHOWN`)."""


@dataclass(frozen=True)
class Placed:
    """A graph whose nodes have places, and the reasons.

    `lacking` has the nodes that the device lacks or that are kept, `exact` the nodes that the host computes in float32 because integers
    would be wrong, each with the reason. `copies` has the copied node of each copy. `layers` were asked for by the user, and
    `without_layers` has the places without that; it is only read if there are layers.
    """

    graph: Graph
    lacking: Mapping[str, str]
    exact: Mapping[str, str]
    copies: Mapping[str, str]
    layers: Layers
    without_layers: Mapping[str, Side]

    @cached_property
    def _computed(self) -> Computed:
        return Computed(self.graph)

    @cached_property
    def _device(self) -> frozenset[str]:
        return frozenset(node.name for node in self.graph if node.on_device)

    @cached_property
    def _functions(self) -> frozenset[str]:
        """The last nodes of the layers without a product."""
        return frozenset(layer[-1] for layer in self.layers if not any(is_product(self.graph[name]) for name in layer))

    @cached_property
    def _idle(self) -> frozenset[tuple[str, ...]]:
        """The layers that are the host's anyway."""
        return frozenset(layer for layer in self.layers if all(self.without_layers[name] == "host" for name in layer))

    def notes(self) -> Iterator[str]:
        """For each reason one note that names the products of the host, or what is exact: those of an unrolled loop once. Layers that were
        asked for have each their name, in the order of the graph; those that were the host's before have a note of their own."""
        named: dict[str, dict[object, str]] = {}
        asked: dict[str, list[str]] = {}
        whole = {name: layer for layer in self.layers for name in layer}
        for node in self._computed.nodes:
            why = self._why_host(node)
            if why == KEPT:
                layer = whole.get(node.name, (node.name,))
                name = self._kept_name(node, layer)
                named.setdefault(IDLE if layer in self._idle else why, {})[name] = name
                asked.setdefault(name, []).extend([] if layer in self._idle else [node.name])
            elif why:
                named.setdefault(why, {}).setdefault(node.origin.spans[:1] or node.name, node.origin.after(self._written(node)))
        for why, nodes in named.items():
            shown = some([*nodes.values()], SHOWN if why in (KEPT, IDLE) else NAMED)
            where = "" if why in self.exact.values() else f" {'is' if len(nodes) == 1 else 'are'} computed on the host"
            yield f"{why}: {shown}{where}"
        if untimed := [*self._untimed(asked)]:
            yield f"not timed: {'; '.join(untimed)}"
        yield from self._followers()

    def _why_host(self, node: Node) -> str:
        """The reason that a note gives for a node of the host; empty if none does."""
        if node.name in self.exact and computes(node):
            return self.exact[node.name]
        return self.lacking.get(node.name, "") if is_product(node) or node.name in self._functions else ""

    def _written(self, node: Node) -> str:
        """A product as in a source: `a @ b`, `conv2d(x, k)`; the name of another node."""
        if node.name in self.copies:
            return f"a copy of {self.copies[node.name]}"
        if not is_product(node):
            return node.name
        return " @ ".join(node.operands) if matmul.made(node) else f"{node.op}({', '.join(node.operands)})"

    def _kept_name(self, node: Node, layer: tuple[str, ...]) -> str:
        """How a note names the layer with this node: as its product's weights, `fc1`; else by the node that is shown, with the others, also
        where layers that the device computes go by the name of the weights, too."""
        name = layer_name(node)
        alike = [other for other in self._computed.nodes if is_product(other) and layer_name(other) == name]
        if name != node.name and all(self.lacking.get(other.name) == KEPT for other in alike):
            return name
        shown = self.layers.get(layer, node.name)
        others = [member for member in layer if member != shown]
        return " with ".join((self.graph[shown].origin.after(shown), *([listed(others)] if others else [])))

    def _untimed(self, layers: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """Of the layers that are kept, by their names, those that the host computes before the device starts or after it has finished."""
        if not self._device:
            return
        below, above = reached_from(self._computed.nodes, self._device), leading_to(self._computed.nodes, self._device)
        done: set[str] = set()
        for when, others in (("before the device starts", below), ("after the device has finished", above)):
            inside = {name: [node for node in nodes if node not in others and node not in done] for name, nodes in layers.items()}
            found = [name if len(there) == len(layers[name]) else f"a part of {name}" for name, there in inside.items() if there]
            done.update(chain.from_iterable(inside.values()))
            if found:
                yield f"{some(found, SHOWN)} {'is' if len(found) == 1 else 'are'} computed {when}"

    def _followers(self) -> Iterator[str]:
        """A note of what the device would compute without the layers that are kept: it reads only these."""
        kept = {*chain.from_iterable(self.layers)}
        moved = [
            node.origin.after(node.name)
            for node in self.graph
            if computes(node) and node.name not in kept and not node.on_device and self.without_layers.get(node.name) == "device"
        ]
        if moved:
            yield f"computed on the host as well, as what they read is the host's then: {some(moved, NAMED)}"
