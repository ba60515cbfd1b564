"""A diagram as DOT, which is written beside the SVG, and which Graphviz draws where it is asked to."""

from __future__ import annotations

import graphviz

from tpucc.explain.names import shown, whole
from tpucc.see.diagrams.diagram import Diagram
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
        graph.node(
            f"n{index}", _label(box.texts), _attributes={"id": f"{diagram.key}-b{index}", **look, "tooltip": origin_text(box.lines) or " "}
        )


def _label(texts: tuple[str, ...]) -> str:
    return str(graphviz.nohtml("\\n".join(graphviz.escape(shown(text)) for text in texts)))


def origin_text(lines: tuple[int, ...]) -> str:
    """`line 9`, `lines 9, 12`."""
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}" if lines else ""
