"""From diagrams to pictures: each is collapsed until it has room, laid out, cut into lines and painted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tpucc.see.diagrams.collapse import LARGEST, Collapsed, sized
from tpucc.see.diagrams.diagram import Diagram
from tpucc.see.diagrams.dot import dot_source
from tpucc.see.diagrams.layout import layered
from tpucc.see.diagrams.paint import extent, painted
from tpucc.see.diagrams.wrap import wrapped

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
