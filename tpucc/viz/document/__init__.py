"""A document: a page of sections with a heading, links to them, and a button for light and dark.

The pages of a training and of a comparison are documents: single files without a network, in which nothing depends on when or where they
are written.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpucc.version import VERSION
from tpucc.viz.html import page_files, page_template
from tpucc.viz.palette import picture_rules, theme
from tpucc.viz.svg import NOTHING, Markup, escaped, joined, tag

Section = tuple[str, str, Markup]
"""A section's key, its name, and what stands in it."""


def document(
    title: str,
    facts: str,
    sections: Sequence[Section],
    *,
    style: str,
    script: str = "",
    before: Markup = NOTHING,
    after: Markup = NOTHING,
) -> str:
    """The page as HTML. `style` and `script` are what it has of its own; `before` stands above the sections, `after` behind all."""
    return page_template(__package__, "document.html").substitute(
        version=escaped(VERSION),
        theme=theme(),
        style="\n".join([picture_rules(), page_files(__package__, "document.css"), style]),
        title=escaped(title),
        facts=escaped(facts),
        links=joined(tag("a", escaped(name), href=f"#{key}") for key, name, _ in sections),
        before=before,
        sections=joined(Markup(f"{tag('section', tag('h2', escaped(name)), body, id=key)}\n") for key, name, body in sections),
        after=after,
        script=page_files(__package__, "theme.js") + script,
    )
