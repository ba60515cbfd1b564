"""Tables that have exactly one row for each member of an enumeration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TypeVar

Member = TypeVar("Member", bound=Enum)
Row = TypeVar("Row")


def one_row_each(name: str, members: type[Member], rows: Sequence[Row], member_of: Callable[[Row], Member]) -> Mapping[Member, Row]:
    """The rows by their members. `name` is the table's name, for messages.

    Raises `TypeError` when a member has no row, or two.
    """
    table: dict[Member, Row] = {}
    for row in rows:
        member = member_of(row)
        if member in table:
            raise TypeError(f"{members.__name__}.{member.name} has two rows in {name}: it can have one only")
        table[member] = row
    missing = [f"{members.__name__}.{member.name}" for member in members if member not in table]
    if missing:
        raise TypeError(f"{', '.join(missing)} has no row in {name}: nothing would know what it means")
    return MappingProxyType(table)
