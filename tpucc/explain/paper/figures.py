"""A published figure beside ours, and sections of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, Literal

import msgspec

from tpucc.explain.paper.published import published, read_table

LARGE_PERCENT = 10.0
"""Relative difference in percent above which a figure wants a reason."""
LARGE_POINTS = 5.0
"""The same for shares, in percentage points."""
LARGE_ABOUT = 25.0
"""The same, in percent, for what the paper says in words (`about three times`)."""
_FORMATS: Mapping[str, str] = {
    "%": "z.1f",
    "TOPS": ".2f",
    "MiB": ".2f",
    "µs": ".1f",
    "ms": ".1f",
    "×": ".2f",
    "cycles": ",.0f",
    "MACs/byte": ",.0f",
    "tiles": ",.0f",
    "1/s": ",.0f",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: of the row and column of its table, in `unit`; None where there is none. `about`: the paper has it in words only.

    `reason` says why ours differs, where it differs much.
    """

    row: str
    column: str
    unit: str
    paper: float | None
    ours: float | None
    about: bool = False
    reason: str = ""

    @property
    def difference(self) -> float | None:
        """Ours against the paper's: percentage points for shares, else percent. None where one is missing or the paper's is zero."""
        if self.paper is None or self.ours is None:
            return None
        if self.unit == "%":
            return self.ours - self.paper
        return 100 * (self.ours - self.paper) / self.paper if self.paper else None

    @property
    def large(self) -> bool:
        """Whether the difference wants a reason."""
        bound = LARGE_POINTS if self.unit == "%" else LARGE_ABOUT if self.about else LARGE_PERCENT
        return self.difference is not None and abs(self.difference) > bound

    def texts(self) -> tuple[str, str, str]:
        """The paper's figure, ours, and the difference, as a table shows them."""
        suffix = "" if self.unit == "%" else "%"
        gap = "–" if self.difference is None else f"{self.difference:+z.1f}{suffix}"
        mark = "~" if self.about and self.paper is not None else ""
        return mark + self._text(self.paper), self._text(self.ours), gap

    def json(self) -> dict[str, Any]:
        """As a JSON object."""
        found = {name: getattr(self, name) for name in ("row", "column", "unit", "paper", "ours", "difference")}
        found["difference_unit"] = "points" if self.unit == "%" else "percent"
        return found | {name: getattr(self, name) for name in ("about", "large", "reason")}

    def _text(self, value: float | None) -> str:
        return "–" if value is None else f"{value:{_FORMATS[self.unit]}}"


@dataclass(frozen=True, slots=True)
class Section:
    """Figures of one table or section of the paper. `notes` are whole sentences. `source` is the head over published figures."""

    key: str
    title: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()
    source: str = "paper"

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows, in order."""
        return tuple(dict.fromkeys(figure.row for figure in self.figures))

    @property
    def unit(self) -> str:
        """The unit of all figures; empty where there are several."""
        units = {figure.unit for figure in self.figures}
        return units.pop() if len(units) == 1 else ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(dict.fromkeys(figure.column for figure in self.figures))

    def grid(self, columns: Sequence[str]) -> list[tuple[str, ...]]:
        """These columns as a table: a row's name with its unit, then of each column the paper's figure, ours, and the difference."""
        places = {(figure.row, figure.column): figure for figure in self.figures}
        return [
            (self._label(places[row, columns[0]]), *(text for column in columns for text in places[row, column].texts()))
            for row in self.rows
        ]

    def head(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The names over `grid`."""
        return (self.unit, *(text for column in columns for text in (column or self.source, "ours", "diff")))

    def reasons(self) -> list[tuple[str, str]]:
        """The reasons for large differences: of which figures, as `unified buffer (MLP0, MLP1)`, and why. Figures with one reason stand
        together."""
        found: dict[str, dict[str, list[str]]] = {}
        for figure in self.figures:
            if figure.reason:
                found.setdefault(figure.reason, {}).setdefault(figure.row, []).append(figure.column)
        return [(", ".join(_named(row, columns) for row, columns in rows.items()), reason) for reason, rows in found.items()]

    def json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"key": self.key, "title": self.title, "figures": [figure.json() for figure in self.figures], "notes": list(self.notes)}

    def _label(self, figure: Figure) -> str:
        told = self.unit or figure.unit == "%" or figure.row.endswith(figure.unit)
        return figure.row if told else f"{figure.row}, {figure.unit}"


def _named(row: str, columns: Sequence[str]) -> str:
    name, places = " ".join(row.split()), ", ".join(filter(None, columns))
    return f"{name} ({places})" if places else name


UNKNOWN = "not explained."
Key = tuple[str, str, str, str]
"""A section, a row, a column or "" for every one that has no reason of its own, and whether ours is more or less."""


class _Figures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    section: str
    ours: Literal["more", "less"]
    rows: tuple[str, ...]
    columns: tuple[str, ...] = ("",)


class _Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    figures: tuple[_Figures, ...]


class _Reasons(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    other_network: str
    reasons: tuple[_Reason, ...]


@cache
def reasons() -> Mapping[Key, str]:
    """Each reason by its figures."""
    places = ((reason.text, place) for reason in _read().reasons for place in reason.figures)
    return {(place.section, *figure, place.ours): text for text, place in places for figure in product(place.rows, place.columns)}


@cache
def _read() -> _Reasons:
    return read_table("reasons.toml", _Reasons)


def with_reasons(section: Section) -> Section:
    """The section, each large difference with its reason, or `UNKNOWN`."""
    return replace(section, figures=tuple(_with_reason(section.key, figure) for figure in section.figures))


def _with_reason(key: str, figure: Figure) -> Figure:
    if not figure.large or figure.difference is None:
        return figure
    way = "more" if figure.difference > 0 else "less"
    if (application := published().applications.get(figure.column.lower())) is not None and application.qualitative:
        return replace(figure, reason=_read().other_network)
    own, general = ((key, figure.row, column, way) for column in (figure.column, ""))
    return replace(figure, reason=reasons().get(own) or reasons().get(general) or UNKNOWN)
