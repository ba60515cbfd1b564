"""How much the texts of a page stand out, measured in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

LEAST = 4.5
"""The ratio of a text's luminance to that of what is behind it which level AA of WCAG 2.1 asks for (success criterion 1.4.3)."""
_SCRIPT = Path(__file__).with_name("contrast.js").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Legibility:
    """How many texts were seen, and those of too little contrast: the ratio, the element, the text and the colours."""

    count: int
    faults: list[str]


def legibility(page: Page) -> Legibility:
    """Of all texts that can be seen now, those aside that recede on purpose."""
    return Legibility(**page.evaluate(_SCRIPT, LEAST))


def legibility_in_both_themes(page: Page) -> Legibility:
    """The texts of the theme that has fewer, and the faults of both; the page is dark after it."""
    found = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found[scheme] = legibility(page)
    faults = [f"{scheme}: {fault}" for scheme, one in found.items() for fault in one.faults]
    return Legibility(min(one.count for one in found.values()), faults)
