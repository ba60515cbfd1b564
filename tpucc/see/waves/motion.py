"""Time in a moving picture: groups that show for some cycles, and slide into the next one. CSS alone, no script.

Where nothing moves (a reader who prefers so, a printer, a program that ignores CSS animations) one cycle stands still.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tpucc.see.svg import Markup, number_text, tag

SECONDS = 1.2
"""How long a cycle lasts."""
REST = 3
"""Cycles for which the end stays, before all begins again."""
SETTLED = 0.5
"""The share of a cycle after which numbers move on."""


@dataclass(frozen=True, slots=True)
class Show:
    """From the first cycle up to, not including, the last; `dx` and `dy` say where to slide at the end. A box that slides out fades."""

    first: int
    last: int
    dx: float = 0.0
    dy: float = 0.0
    fades: bool = False

    @property
    def name(self) -> str:
        """The name of its motion, the same for all that move alike."""
        parts = (str(self.first), str(self.last), number_text(self.dx), number_text(self.dy))
        return "s" + "_".join(parts).replace("-", "m").replace(".", "p") + "f" * self.fades


Shown = tuple[Show, Markup]


@dataclass(frozen=True, slots=True)
class Film:
    """`cycles` cycles, of which `still` is shown where nothing moves."""

    cycles: int
    still: int

    def layer(self, shown: Iterable[Shown]) -> Markup:
        """The boxes on one level: a group for each way to show."""
        groups: dict[Show, list[Markup]] = {}
        for show, markup in shown:
            groups.setdefault(show, []).append(markup)
        return Markup("".join(self._group(show, parts) for show, parts in groups.items()))

    def style_sheet(self, shows: Iterable[Show]) -> str:
        """The motions that these need, each once."""
        rules = dict.fromkeys(text for show in shows if not self._always(show) for text in self._rules(show))
        still = "@media print,(prefers-reduced-motion:reduce){svg *{animation:none!important}}"
        return "".join(rules) + still

    def _group(self, show: Show, parts: list[Markup]) -> Markup:
        if self._always(show):
            return tag("g", *parts)
        hidden = None if show.first <= self.still < show.last else 0
        return tag("g", *parts, class_=show.name, opacity=hidden)

    def _always(self, show: Show) -> bool:
        return show.first <= 0 and show.last >= self.cycles and not show.dx and not show.dy

    def _rules(self, show: Show) -> Iterator[str]:
        length = number_text((self.cycles + REST) * SECONDS)
        yield f".{show.name}{{animation:{show.name} {length}s infinite step-end}}"
        yield f"@keyframes {show.name}{{{''.join(self._frames(show))}}}"

    def _frames(self, show: Show) -> Iterator[str]:
        """Hidden, shown, perhaps sliding, hidden."""
        ends = show.last >= self.cycles
        if show.first > 0:
            yield "0%{opacity:0}"
        yield f"{self._percent(show.first)}{{opacity:1;transform:none}}"
        if show.dx or show.dy:
            slide = f"translate({number_text(show.dx)}px,{number_text(show.dy)}px)"
            yield f"{self._percent(show.last - 1 + SETTLED)}{{opacity:1;transform:none;animation-timing-function:ease-in-out}}"
            yield f"{self._percent(show.last - 0.001)}{{opacity:{0 if show.fades else 1};transform:{slide}}}"
        if not ends:
            yield f"{self._percent(show.last)}{{opacity:0;transform:none}}"
        yield f"to{{opacity:{1 if ends else 0};transform:none}}"

    def _percent(self, cycle: float) -> str:
        return f"{100 * cycle / (self.cycles + REST):.3f}%"
