"""Graphs as text, one node a line; `tpucc.ir.parser` reads it back.

```
graph iris "iris.tpu"

x = input : f32[150, 4] in [0.0, 8.0]                           @ 13:12-28
fc1.w = weight(key="fc1.w") : f32[4, 256]                       @ 8:5-40 via 14:17-35
h = matmul(x, fc1.w) : f32[150, 256] on device                  @ 11:12-17 via 14:17-35

return h as "h"
```
Operands come first, then the attributes that differ from their defaults, the type, and after `@` the origin: `by` the pass that made the
node, its places in the source, and `via` the calls that led there. Once operators are placed, `on device` stands behind the type of what
the device computes, and all else is the host's; where that is everything, `on host` says so. In a layer graph, `holds h, y` names the
values of the operator graph that a node has, where that isn't just the one of its own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from tpucc.diagnostics import Origin
from tpucc.ir.attributes import non_default
from tpucc.ir.codec import quote
from tpucc.ir.literals import DataWriter, print_value
from tpucc.ir.node import Firing, Node, Output, Side
from tpucc.ir.tokens import PLAIN_NAME

ORIGIN_COLUMN = 64


class Printable(Protocol):
    """A graph, as far as its text has it."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def outputs(self) -> tuple[Output, ...]: ...

    def __iter__(self) -> Iterator[Node]: ...


def print_graph(graph: Printable, *, origins: bool = True, with_data: bool = True, after: str = "") -> str:
    """The text of a graph; without `origins` for what shall not depend on places in the source.

    Without data, large constants are digests (`tpucc.ir.digests`). `after` names the pass that made the graph: compiling can continue after
    it. Raises `TypeError` when an attribute has no text form, which `verify_graph` reports before.
    """
    data = DataWriter(with_data)
    head = f"graph {print_name(graph.name)}" + (f" {quote(graph.source)}" if graph.source and origins else "")
    head += f" after {after}" if after else ""
    said: Side = "device" if any(node.on_device for node in graph) else "host"
    lines = [print_node(node, data, origins=origins, place=said) for node in graph]
    outputs = ", ".join(f"{print_name(output.node)} as {quote(output.name)}" for output in graph.outputs)
    text = "\n".join([head, "", *lines, "", f"return {outputs}".rstrip(), ""])
    return "\n".join([text, *data.sections()])


def print_node(node: Node, data: DataWriter, *, origins: bool = True, place: Side = "device") -> str:
    """One line; the arrays that don't fit in it are named in `data`. The node's place is said when it is `place`."""
    arguments = [*map(print_name, node.operands), *(f"{key}={print_value(value, data)}" for key, value in non_default(node.attributes))]
    call = f"{print_name(node.op)}({', '.join(arguments)})" if arguments else print_name(node.op)
    where = f" on {node.place}" if node.place == place else ""
    held = f" holds {', '.join(map(print_name, node.holds))}" if node.holds else ""
    text = f"{print_name(node.name)} = {call} : {node.type}{where}{held}"
    return f"{text:<{ORIGIN_COLUMN - 1}} @ {print_origin(node.origin)}" if origins and node.origin else text


def print_firings(firings: Iterable[Firing]) -> str:
    """How rules made a graph: each time that one fired its name, then the nodes that it matched, after `-`, and those that it made, after
    `+`."""
    data = DataWriter(False)

    def lines(sign: str, nodes: tuple[Node, ...]) -> Iterator[str]:
        return (f"  {sign} {print_node(node, data, origins=False)}" for node in nodes)

    fired = ([f"rule: {each.rule}", *lines("-", each.matched), *lines("+", each.made)] for each in firings)
    return "".join(f"; {line}\n" for each in fired for line in each)


def print_origin(origin: Origin) -> str:
    """`by fuse-bias 11:12-17 9:3-8 via 14:17-35`."""
    words: list[str] = []
    if origin.made_by:
        words += ["by", print_name(origin.made_by)]
    words += map(str, origin.spans)
    if origin.calls:
        words += ["via", *map(str, origin.calls)]
    return " ".join(words)


def print_name(name: str) -> str:
    """A name as it stands, quoted when it has characters that names of the text form don't have."""
    return name if PLAIN_NAME.fullmatch(name) else quote(name)
