"""A diagram as DOT: what Graphviz lays out, and what is written beside the SVG.

Sizes of boxes and labels are stated, from our own table of widths: the layout doesn't depend on the fonts of the machine. Texts are so
small that a wide font fits, too, as Graphviz has no font for which another size could be asked.
"""

from __future__ import annotations

from collections import Counter
from html import escape

import graphviz

from tpucc.explain.names import shown
from tpucc.viz.diagrams.diagram import Diagram, Edge
from tpucc.viz.fonts import SHARE
from tpucc.viz.heading import titled
from tpucc.viz.palette import INKS, KINDS, Kind
from tpucc.viz.svg import escaped
from tpucc.viz.text import LINE_HEIGHT, NORMAL, SMALL, text_width

POINTS = 72.0
PADDING = 12.0
"""Around a text of the heading, in points."""
FONTS = "Helvetica,Arial,sans-serif"
TEXT, HEAD = (f"{size * SHARE / 100:.1f}" for size in (SMALL, NORMAL))
"""Sizes of texts in points: of boxes and arrows, and of the heading."""


def dot_source(diagram: Diagram) -> str:
    """The diagram in DOT. Box i is the node `n<i>`, edge i has the id `<key>-e<i>`, cluster i is `cluster_<i>`."""
    graph = graphviz.Digraph(graphviz.escape(titled(diagram.title)))
    graph.attr("graph", label=_heading(diagram), labelloc="t", labeljust="l", fontname=FONTS, fontsize=HEAD)
    direction = {"rankdir": "LR", "ranksep": "0.12"} if diagram.horizontal else {"rankdir": "TB", "ranksep": "0.3"}
    graph.attr("graph", nodesep="0.22", nslimit="4", mclimit="2", **direction)
    graph.attr("node", shape="box", style="filled,rounded", fontname=FONTS, fontsize=TEXT, margin="0")
    graph.attr("edge", fontname=FONTS, fontsize=TEXT, arrowsize="0.7", color=INKS["soft"].light)
    for index, cluster in enumerate(diagram.clusters):
        if index not in diagram.owners:
            continue  # Graphviz gives a cluster without boxes no place
        with graph.subgraph(name=f"cluster_{index}") as inner:
            inner.attr(label=_sized((cluster.label,), 7.0 * len(shown(cluster.label)), 15.0), style="rounded", color=INKS["rule"].light)
            _add_boxes(inner, diagram, [i for i in diagram.main_boxes if diagram.boxes[i].cluster == index])
    _add_boxes(graph, diagram, [i for i in diagram.main_boxes if diagram.boxes[i].cluster < 0])
    fan = Counter(edge.tail for edge in diagram.edges)
    for index, edge in enumerate(diagram.edges):
        graph.edge(f"n{edge.tail}", f"n{edge.head}", _attributes=_edge_attributes(diagram, index, edge, fan[edge.tail]))
    return str(graph.source)


def _add_boxes(graph: graphviz.Digraph, diagram: Diagram, boxes: list[int]) -> None:
    """The boxes; one with small boxes is in an unseen cluster with them, on one rank, so that nothing comes between."""
    for index in boxes:
        if index not in diagram.small_boxes:
            _add_box(graph, diagram, index)
            continue
        with graph.subgraph(name=f"cluster_b{index}") as close:
            close.attr(label="", style="invis", margin="0")
            with close.subgraph(None) as rank:
                rank.attr(rank="same")
                for small in (*diagram.small_boxes[index], index):
                    _add_box(rank, diagram, small)


def _add_box(graph: graphviz.Digraph, diagram: Diagram, index: int) -> None:
    label = graphviz.nohtml("\\n".join(graphviz.escape(text) for text in diagram.boxes[index].texts))
    graph.node(f"n{index}", str(label), _attributes=_box_attributes(diagram, index))


def _box_attributes(diagram: Diagram, index: int) -> dict[str, str]:
    box = diagram.boxes[index]
    width, height = box.size
    colour = KINDS[box.kind]
    attributes = {
        "id": f"{diagram.key}-b{index}",
        "class": " ".join((str(box.kind), *(f"line-{number}" for number in box.lines))),
        "width": f"{width / POINTS:.4f}",
        "height": f"{height / POINTS:.4f}",
        "fixedsize": "true",
        "fillcolor": colour.fill,
        "color": colour.line,
    }
    if box.shares:
        whole = sum(amount for _, amount in box.shares)
        *most, last = ((KINDS[kind].fill, amount / whole) for kind, amount in box.shares)
        stripes = ":".join([*(f"{fill};{share:.4f}" for fill, share in most), last[0]])
        attributes |= {"style": "striped", "fillcolor": stripes, "color": INKS["soft"].light}
    if box.lines:
        attributes["tooltip"] = origin_text(box.lines)
    if box.stands_for > 1:
        attributes["penwidth"] = "3"
    return attributes


def _edge_attributes(diagram: Diagram, index: int, edge: Edge, fan: int) -> dict[str, str]:
    attributes = {"id": f"{diagram.key}-e{index}"}
    if diagram.boxes[edge.tail].small:
        return {**attributes, "style": "dashed", "weight": "1"}
    if edge.label:
        attributes["label"] = _sized(edge.label, *edge.size)
    attributes["penwidth"] = "2" if edge.quantised else "1"
    attributes["weight"] = "1000" if fan == 1 else "100"
    return attributes


def origin_text(lines: tuple[int, ...]) -> str:
    """`line 9`, `lines 9, 12`."""
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}" if lines else ""


def _sized(texts: tuple[str, ...], width: float, height: float) -> str:
    """A label of this size, whatever fonts there are: an HTML-like table with one cell."""
    body = "<br/>".join(escaped(shown(text)) for text in texts)
    cell = f'<td fixedsize="true" width="{width:.0f}" height="{height:.0f}">{body}</td>'
    return f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="0"><tr>{cell}</tr></table>>'


def _heading(diagram: Diagram) -> str:
    """Title, subtitle and legend, as the graph's own label, of a size that doesn't depend on fonts."""
    rows = [f"<b>{escaped(titled(diagram.title))}</b>"]
    rows += [escaped(shown(diagram.subtitle, 300))] if diagram.subtitle else []
    span = f' colspan="{max(1, len(diagram.kinds))}" align="left"'
    lines = "".join(f"<tr><td{span}>{row}</td></tr>" for row in rows)
    cells = "".join(_legend_cell(kind) for kind in diagram.kinds)
    legend = f"<tr>{cells}</tr>" if cells else ""
    width = max(
        text_width(titled(diagram.title), NORMAL, bold=True),
        text_width(shown(diagram.subtitle, 300), NORMAL),
        sum(text_width(KINDS[kind].meaning, NORMAL) + PADDING for kind in diagram.kinds),
    )
    size = f'fixedsize="true" width="{width + PADDING:.0f}" height="{(len(rows) + bool(cells)) * (NORMAL * LINE_HEIGHT + PADDING):.0f}"'
    return f'<<table border="0" cellborder="0" cellspacing="4" {size}>{lines}{legend}</table>>'


def _legend_cell(kind: Kind) -> str:
    colour = KINDS[kind]
    return f'<td border="1" bgcolor="{colour.fill}" color="{colour.line}">{escape(colour.meaning)}</td>'
