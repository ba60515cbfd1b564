"""The pages of the documentation that a lab's texts name, as an archive for students has them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

PAGES = "docs"
_NAMED = re.compile(rf"\b{PAGES}/([\w-]+\.md)\b")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def folder() -> Path:
    """Where the pages lie: in a checkout beside the package; an installed one has inside it those that handouts name."""
    package = Path(__file__).resolve().parents[1]
    installed = package / PAGES
    return installed if installed.is_dir() else package.parent / PAGES


def named(texts: Iterable[str]) -> set[str]:
    """The pages that texts name, as in `docs/rtl.md`."""
    return {name for text in texts for name in _NAMED.findall(text)}


def pages(names: Collection[str], there: Collection[str]) -> dict[str, bytes]:
    """Pages by their paths in an archive that has the files `there` as well, with the pictures that they show. Links to other files are
    their text alone."""
    found = dict[str, bytes]()
    known = {f"../{name}" for name in there} | set(names)

    def link(match: re.Match[str]) -> str:
        shows, text, target = match.groups()
        if shows:
            found[f"{PAGES}/{target}"] = (folder() / target).read_bytes()
        return match[0] if shows or "://" in target or target.partition("#")[0] in {"", *known} else text

    for name in sorted(names):
        parts = _FENCED.split((folder() / name).read_text("utf-8"))
        parts[::2] = (_LINK.sub(link, part) for part in parts[::2])
        found[f"{PAGES}/{name}"] = "".join(parts).encode()
    return found
