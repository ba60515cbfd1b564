"""The parts that every page is put together from: files beside its code, data for its scripts, paragraphs."""

from __future__ import annotations

from importlib import resources
from string import Template
from typing import Any

import msgspec

from tpucc.explain.terms import TERMS
from tpucc.viz.svg import NOTHING, Markup, escaped, prose, tag


def page_files(package: str, *names: str) -> str:
    """The text of files in the folder of a package, such as `page.css` and `js/main.js`, one after the other."""
    folder = resources.files(package)
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in names)


def page_template(package: str, name: str) -> Template:
    """A file in the folder of a package, in which `$` stands before the names of what is put in."""
    return Template(page_files(package, name))


def embedded(values: Any) -> str:
    """The values as JSON in which nothing ends a script element."""
    return msgspec.json.encode(values).decode().replace("<", "\\u003c")


def soft(words: str) -> Markup:
    """A paragraph of what stands beside the matter; nothing without words."""
    return tag("p", prose(words), class_="soft") if words else NOTHING


def term(word: str, meaning: str = "") -> Markup:
    """A word that shows its definition under the pointer, and when it has the keyboard's focus; plain text if there is none."""
    found = meaning or TERMS.get(word, "")
    return tag("span", escaped(word), class_="term", tabindex=0, title=found) if found else escaped(word)
