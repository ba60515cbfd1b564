"""From diagrams to pictures: each is collapsed until it has room, laid out, cut into lines and painted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import graphviz

from tpucc.explain.names import shown, whole
from tpucc.see.diagrams.collapse import LARGEST, Collapsed, sized
from tpucc.see.diagrams.diagram import Diagram
from tpucc.see.diagrams.layout import layered
from tpucc.see.diagrams.paint import extent, painted
from tpucc.see.diagrams.wrap import wrapped
from tpucc.see.heading import titled
from tpucc.see.palette import INKS, KINDS

FONT = {"fontname": "Helvetica,Arial,sans-serif", "fontsize": "10"}


def dot_source(diagram: Diagram) -> str:
    """The diagram in DOT. Box i is the node `n<i>`, edge i has the id `<key>-e<i>`, cluster i is `cluster_<i>`."""
    title = graphviz.escape(titled(diagram.title))
    graph = graphviz.Digraph(title, node_attr={**FONT, "shape": "box", "style": "filled,rounded"}, edge_attr=FONT)
    words = "\\l".join(graphviz.escape(text) for text in (titled(diagram.title), whole(diagram.subtitle)) if text)
    graph.attr("graph", label=f"{words}\\l", labelloc="t", labeljust="l", rankdir="LR" if diagram.horizontal else "TB", **FONT)
    for index, cluster in enumerate(diagram.clusters):
        with graph.subgraph(name=f"cluster_{index}") as inner:
            inner.attr(label=_label((cluster.label,)), style="rounded", color=INKS["rule"].light)
            _add_boxes(inner, diagram, [i for i, owner in enumerate(diagram.owners) if owner == index])
    _add_boxes(graph, diagram, [i for i, owner in enumerate(diagram.owners) if owner < 0])
    for index, edge in enumerate(diagram.edges):
        look = {"style": "dashed", "arrowhead": "none"} if diagram.boxes[edge.tail].small else {"penwidth": "2" if edge.quantised else "1"}
        graph.edge(f"n{edge.tail}", f"n{edge.head}", _label(edge.label), _attributes={"id": f"{diagram.key}-e{index}", **look})
    with graph.subgraph(name="cluster_colours", graph_attr={"label": "colours", "style": "rounded"}) as inner:
        for kind in diagram.kinds:
            inner.node(f"colour_{kind}", KINDS[kind].meaning, fillcolor=KINDS[kind].fill, color=KINDS[kind].line)
    return str(graph.source)


def _add_boxes(graph: graphviz.Digraph, diagram: Diagram, boxes: list[int]) -> None:
    for index in boxes:
        box, colour = diagram.boxes[index], KINDS[diagram.boxes[index].kind]
        classes = " ".join((str(box.kind), *(f"line-{number}" for number in box.lines)))
        look = {"class": classes, "fillcolor": colour.fill, "color": colour.line, "penwidth": "3" if box.stands_for > 1 else "1"}
        graph.node(f"n{index}", _label(box.texts), _attributes={"id": f"{diagram.key}-b{index}", **look, "tooltip": box.origin_text or " "})


def _label(texts: tuple[str, ...]) -> str:
    return str(graphviz.nohtml("\\n".join(graphviz.escape(shown(text)) for text in texts)))


NARROW = 240.0
"""The least width of a heading beside another picture."""


@dataclass(frozen=True)
class Rendered:
    """A picture, the diagram in full, and what each box that was drawn stands for.

    Box number n of the diagram that was drawn is the element `KEY-bn` of the picture.
    """

    svg: str
    full: Diagram
    collapsed: Collapsed

    @property
    def diagram(self) -> Diagram:
        """The diagram as it was drawn."""
        return self.collapsed.diagram

    @cached_property
    def dot(self) -> str:
        """The diagram as it was drawn, in DOT, for Graphviz."""
        return dot_source(self.diagram)


def render(diagram: Diagram) -> Rendered:
    """The diagram as SVG, collapsed until its picture is no larger than `LARGEST`, or as far as it can be."""
    for small in sized(diagram):
        layout = wrapped(small.diagram, layered(small.diagram))
        if all(own <= most for own, most in zip(extent(small.diagram, layout), LARGEST, strict=True)):
            break
    return Rendered(painted(small.diagram, layout), diagram, small)


def drawn_as_it_is(diagram: Diagram) -> str:
    """The diagram as SVG, whatever its size, with a heading no wider than `NARROW` where it is narrow itself."""
    return painted(diagram, wrapped(diagram, layered(diagram)), NARROW)
