"""Why our figures differ from the paper's, where they differ much: `reasons.toml` has the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Literal

import msgspec

from tpucc.explain.paper.figures import Figure, Section
from tpucc.explain.paper.published import published, read_table

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
