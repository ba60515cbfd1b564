"""The origins of everything on the page, each once: what links a line of the source to boxes, tiles, instructions and buffers."""

from __future__ import annotations

from typing import Any

from tpucc.diagnostics import Origin, Span, printable


class Origins:
    """Gives each origin a number. The page says of everything only the numbers of its origins."""

    def __init__(self) -> None:
        self._numbers: dict[Origin, int] = {}
        self._spans: dict[Span, int] = {}

    def number(self, origin: Origin) -> int:
        return self._numbers.setdefault(origin, len(self._numbers))

    def payload(self) -> dict[str, Any]:
        """`spans` as text, and for each origin its lines, its spans and calls (indices of `spans`), and the pass that made it."""
        origins = [
            {
                "lines": sorted(origin.lines),
                "line": origin.line,
                "spans": [self._span(span) for span in origin.spans],
                "calls": [self._span(span) for span in origin.calls],
                "by": printable(origin.made_by),
            }
            for origin in self._numbers
        ]
        return {"spans": [str(span) for span in self._spans], "origins": origins}

    def _span(self, span: Span) -> int:
        return self._spans.setdefault(span, len(self._spans))
