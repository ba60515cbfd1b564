"""Why our figures differ from the paper's, where they differ much. `E` below stands for "every application"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tpucc.paper.figures import Figure, Section

E = ""
REASONS: Mapping[tuple[str, str, str, str], str] = MappingProxyType({})


def with_reasons(section: Section) -> Section:
    """The section, each large difference with its reason where one is known."""
    return replace(section, figures=tuple(_with_reason(section.key, figure) for figure in section.figures))


def _with_reason(key: str, figure: Figure) -> Figure:
    if not figure.large or figure.difference is None:
        return figure
    way = "more" if figure.difference > 0 else "less"
    for column in (figure.column, E):
        if (reason := REASONS.get((key, figure.row, column, way))) is not None:
            return replace(figure, reason=reason)
    return figure
