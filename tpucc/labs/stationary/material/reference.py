"""Lab 15: the blocks of one side stay, as many as there is room for, and those of the other side pass by."""

from __future__ import annotations

from collections.abc import Iterator

Pair = tuple[int, int]


def blocks(rows: int, columns: int, places: int) -> list[Pair]:
    """The order of the blocks of y in which the fewest blocks of x and w are loaded, of those in which one side's blocks stay."""
    tried = [
        list(passing(rows, columns, stay, by_rows, to_and_fro))
        for stay in range(places - 1, 0, -1)
        for by_rows in (True, False)
        for to_and_fro in (True, False)
    ]
    return min(tried, key=lambda pairs: loads(pairs, places))


def passing(rows: int, columns: int, stay: int, by_rows: bool, to_and_fro: bool) -> Iterator[Pair]:
    """So many blocks of one side stay while all of the other side pass, every second time the other way round."""
    own, other = (rows, columns) if by_rows else (columns, rows)
    for number, first in enumerate(range(0, own, stay)):
        passed = range(other)[::-1] if to_and_fro and number % 2 else range(other)
        for block in passed:
            for kept in range(first, min(first + stay, own)):
                yield (kept, block) if by_rows else (block, kept)


def loads(pairs: list[Pair], places: int) -> int:
    """How many blocks are loaded."""
    uses: dict[tuple[str, int], list[int]] = {}
    for turn, pair in enumerate(pairs):
        for block in zip("xw", pair, strict=True):
            uses.setdefault(block, []).append(turn)
    there: dict[tuple[str, int], int] = {}
    count = 0
    for turn, pair in enumerate(pairs):  # noqa: B007 in some terms
        own = list(zip("xw", pair, strict=True))
        for block in own:
            if block not in there:
                count += 1
                if len(there) == places:
                    del there[max((each for each in there if each not in own), key=lambda each: (there[each], each))]
                there[block] = 0
            uses[block].pop(0)
        for block in own:
            there[block] = {{rank}}
    return count
