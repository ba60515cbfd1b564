"""Pictures as parts of a page: without the colours of their own, which the page's style sheet has for all of them."""

from __future__ import annotations

from tpucc.viz.palette import INKS, KINDS, style_sheet
from tpucc.viz.svg import Markup, tag


def inlined(svg: str) -> Markup:
    """An SVG file of ours as a part of the page."""
    return Markup(svg.strip().replace(tag("style", Markup(style_sheet())), "", 1))


def picture_rules() -> str:
    """CSS that gives the shapes of inlined pictures their colours: the variables of `theme`."""
    rules = [
        f".k-{kind}{{fill:var(--{kind});stroke:var(--{kind}-line)}}"
        f".s-{kind}{{fill:var(--{kind}-line)}}.t-{kind}{{stroke:var(--{kind}-line)}}"
        for kind in KINDS
    ]
    rules += [f".f-{name}{{fill:var(--{name})}}.l-{name}{{stroke:var(--{name})}}" for name in INKS]
    return "".join([*rules, ".h-paper{stroke:var(--paper)}"])
