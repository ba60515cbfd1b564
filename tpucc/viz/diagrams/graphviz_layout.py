"""Reading Graphviz's layout: its JSON (`-Tjson0`), in points with y up, becomes a `Layout` in pixels with y down.

https://graphviz.org/docs/outputs/json/
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from tpucc.viz.diagrams.diagram import Diagram, Edge
from tpucc.viz.diagrams.layout import Frame, Layout, Route, straight
from tpucc.viz.rect import Point, Rect, centred


class Placed(msgspec.Struct):
    """A node or a cluster."""

    name: str = ""
    pos: str = ""
    bb: str = ""


class Drawn(msgspec.Struct):
    """An edge."""

    id: str = ""
    pos: str = ""
    lp: str = ""


class Answer(msgspec.Struct):
    """The parts of one graph's JSON that are used."""

    objects: list[Placed] = []
    edges: list[Drawn] = []


def read_layouts(text: str, diagrams: Sequence[Diagram]) -> list[Layout]:
    """One layout for each diagram. Raises `ValueError` for anything but Graphviz's answer to these diagrams."""
    decoder, found, at = json.JSONDecoder(), [], 0
    for diagram in diagrams:
        while at < len(text) and text[at].isspace():
            at += 1
        value, at = decoder.raw_decode(text, at)
        try:
            found.append(_layout(msgspec.convert(value, Answer), diagram))
        except (msgspec.ValidationError, KeyError, IndexError) as error:
            raise ValueError(f"not the layout of {diagram.key}: {error}") from None
    return found


def _layout(answer: Answer, diagram: Diagram) -> Layout:
    objects: Mapping[str, Placed] = {item.name: item for item in answer.objects}
    edges = {edge.id: edge for edge in answer.edges}
    boxes = tuple(centred(*_point(objects[f"n{index}"].pos), box.size) for index, box in enumerate(diagram.boxes))
    routes = tuple(_route(index, edges[f"{diagram.key}-e{index}"], edge) for index, edge in enumerate(diagram.edges))
    frames = [Frame(index, _rect(objects[name].bb)) for index in range(len(diagram.clusters)) if (name := f"cluster_{index}") in objects]
    return Layout(boxes, routes, tuple(frames))


def _point(text: str) -> Point:
    x, y = text.split(",")[:2]
    return float(x), -float(y)


def _rect(text: str) -> Rect:
    left, bottom, right, top = map(float, text.split(","))
    return Rect(left, -top, right, -bottom)


def _route(index: int, drawn: Drawn, edge: Edge) -> Route:
    """`e,X,Y` before the curve is the arrow's tip, `s,X,Y` the place where the edge begins; both lie past the curve's ends."""
    words = drawn.pos.split(";")[0].split()
    start, tip = ([_point(word[2:]) for word in words if word.startswith(mark)] for mark in ("s,", "e,"))
    points = [_point(word) for word in words if word[0] not in "se"]
    chain = (*straight([*start, points[0]])[:-1], *points[:-1], *straight([points[-1], *tip]))
    return Route(index, chain, label=centred(*_point(drawn.lp), edge.size) if edge.label and drawn.lp else None)
