"""Lab 15: what stays in vector memory. Begin here: the handout says what is asked."""

from __future__ import annotations


def blocks(rows: int, columns: int, places: int) -> list[tuple[int, int]]:
    """The blocks of y in the order in which they are computed: pairs of a row and a column, each once.

    A block of y needs the row's block of x and the column's block of w. There is room for `places` blocks of x and w together.
    """
    # This is right, and loads far too much: while one row's block of x stays, all blocks of w pass.
    return [(row, column) for row in range(rows) for column in range(columns)]
