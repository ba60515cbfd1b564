"""Pictures as parts of a page: without the colours of their own, which the page's style sheet has for all of them."""

from __future__ import annotations

from tpucc.viz.palette import INKS, KINDS, style_sheet
from tpucc.viz.svg import Markup, tag


def inlined(svg: str) -> Markup:
    """An SVG file of ours as a part of the page."""
    return Markup(svg.strip().replace(tag("style", Markup(style_sheet())), "", 1))


def colours(dark: bool) -> str:
    """The palette as CSS variables: `--matrix` and `--matrix-line` for a kind, `--ink` for an ink."""
    kinds = [(kind, (c.dark_fill, c.dark_line) if dark else (c.fill, c.line)) for kind, c in KINDS.items()]
    rules = [f"--{kind}:{fill};--{kind}-line:{line};" for kind, (fill, line) in kinds]
    return "".join([*rules, *(f"--{name}:{ink.dark if dark else ink.light};" for name, ink in INKS.items())])


def picture_rules() -> str:
    """CSS that gives the shapes of inlined pictures their colours."""
    rules = [
        f".k-{kind}{{fill:var(--{kind});stroke:var(--{kind}-line)}}"
        f".s-{kind}{{fill:var(--{kind}-line)}}.t-{kind}{{stroke:var(--{kind}-line)}}"
        for kind in KINDS
    ]
    rules += [f".f-{name}{{fill:var(--{name})}}.l-{name}{{stroke:var(--{name})}}" for name in INKS]
    return "".join([*rules, ".h-paper{stroke:var(--paper)}"])
