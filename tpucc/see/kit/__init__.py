"""What all pages are put together from: a shell, the theme, base rules, files beside a page's code, data for its scripts, words.

Pages are single files without a network, in which nothing depends on when or where they are written. A page is its data, its markup, and
the scripts that it names: those of its own folder `js/`, and `dom` and `theme`, which are here for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template
from typing import Any

import msgspec

from tpucc.diagnostics import printable
from tpucc.explain.terms import TERMS
from tpucc.see.palette import picture_rules, theme
from tpucc.see.svg import NOTHING, Markup, beside, escaped, inlined, joined, prose, tag
from tpucc.version import VERSION

SCRIPTS = ("dom", "theme")
"""The files of `js/` that any page may have."""
NARROW = 366.0
"""The width of charts for narrow windows, in pixels."""
_COMMENT = re.compile(r"^ */\*\*.*?\*/\n", re.MULTILINE | re.DOTALL)
Section = tuple[str, str, Markup]
"""A section's key, its name, and what stands in it."""


def page_files(package: str, *names: str) -> str:
    """The text of files in the folder of a package, such as `page.css` and `js/main.js`, one after the other."""
    folder = resources.files(package)
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in names)


def page_template(package: str, name: str) -> Template:
    """A file in the folder of a package, in which `$` stands before the names of what is put in."""
    return Template(page_files(package, name))


def scripts(package: str, names: Sequence[str]) -> str:
    """The scripts of a page in their order, without their comments, in one scope of their own."""
    files = "\n".join(page_files(__package__ if name in SCRIPTS else package, f"js/{name}.js") for name in names)
    return f'"use strict";\n(() => {{\n{_COMMENT.sub("", files)}\n}})();'


def embedded(values: Any) -> Markup:
    """The values as JSON for the scripts, in which nothing ends the element."""
    text = msgspec.json.encode(values).decode().replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="data">{text}</script>\n')


def shell(title: str, body: str, *, style: str, script: str = "") -> str:
    """A page as HTML, with the theme and the base rules before its own `style`."""
    rules = "\n".join([theme(), page_files(__package__, "kit.css"), style])
    element = f"<script>\n{script}\n</script>\n" if script else ""
    parts = {"version": escaped(VERSION), "title": escaped(printable(title)), "style": rules, "body": body, "script": element}
    return page_template(__package__, "shell.html").substitute(parts)


def document(
    package: str,
    title: str,
    facts: str,
    sections: Sequence[Section],
    names: Sequence[str] = ("theme",),
    *,
    sheet: str = "page.css",
    before: Markup = NOTHING,
    after: Markup = NOTHING,
) -> str:
    """A page of sections with a heading, and links to them. `package` has the style `sheet` and the scripts of these `names` that
    aren't the kit's. `before` stands above the sections, `after` behind all."""
    links = joined(tag("a", escaped(name), href=f"#{key}") for key, name, _ in sections)
    shown = joined(Markup(f"{tag('section', tag('h2', escaped(name)), body, id=key)}\n") for key, name, body in sections)
    head = joined([tag("h1", escaped(title)), tag("p", escaped(facts)), THEME])
    parts = [tag("header", head), tag("nav", links, aria_label="sections") if sections else NOTHING, tag("main", before, shown), after]
    style = "\n".join([picture_rules(), page_files(__package__, "document.css"), page_files(package, sheet)])
    return shell(title, "\n".join(part for part in parts if part), style=style, script=scripts(package, names))


THEME = Markup('<button type="button" id="theme" title="light or dark" aria-label="light or dark">☾</button>')
"""The button of the script `theme`."""


def by_width(key: str, wide: str, narrow: str) -> Markup:
    """A picture, and behind it the same for narrow windows. `key` begins the ids of both."""
    return joined([inlined(wide), inlined(beside(narrow, key))])


def numbers(facts: Iterable[tuple[str, str, str]]) -> Markup:
    """Numbers that stand out: of each its name, its value, and a remark, which may be empty."""
    cells = []
    for name, value, remark in facts:
        beside = tag("small", escaped(printable(remark))) if remark else NOTHING
        cells.append(tag("div", tag("dt", term(name)), tag("dd", escaped(printable(value)), beside)))
    return tag("dl", *cells, class_="numbers")


def soft(words: str) -> Markup:
    """A paragraph of what stands beside the matter; nothing without words."""
    return tag("p", prose(words), class_="soft") if words else NOTHING


def term(word: str) -> Markup:
    """A word that shows its definition under the pointer, and when it has the keyboard's focus; plain text if there is none."""
    found = TERMS.get(word)
    return tag("span", escaped(word), class_="term", tabindex=0, title=found) if found else escaped(word)
