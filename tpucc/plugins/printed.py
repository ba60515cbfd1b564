"""How much is kept of what the user's code prints, and of what its exceptions say, which may be more than a page or a terminal takes."""

from __future__ import annotations

from collections.abc import Callable
from io import TextIOBase

KEPT = 10_000
"""Characters that are kept."""


def shortened(text: str, lost: int = 0) -> str:
    """The first `KEPT` characters, and how many more there were: the rest of the text, and `lost` that were lost before."""
    more = lost + max(0, len(text) - KEPT)
    return text[:KEPT] + (f"\n… {more:,} more characters are not kept\n" if more else "")


class Printed(TextIOBase):
    """A stream of text that keeps its beginning, and counts the rest. `heard` is called with what is kept as soon as it is printed."""

    def __init__(self, heard: Callable[[str], object] | None = None) -> None:
        self._text, self._lost, self._heard = "", 0, heard

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        room = KEPT - len(self._text)
        self._text += text[:room]
        self._lost += max(0, len(text) - room)
        if self._heard and text[:room]:
            self._heard(text[:room])
        return len(text)

    @property
    def text(self) -> str:
        """What was printed, shortened."""
        return shortened(self._text, self._lost)
