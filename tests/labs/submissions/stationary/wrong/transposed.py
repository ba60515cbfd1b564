"""Fails `few places`: takes rows for columns, which a square product doesn't show."""


def blocks(rows, columns, places):
    found = []
    for first in range(0, rows, places - 1):
        found += [(column, row) for column in range(columns) for row in range(first, min(first + places - 1, rows))]
    return found
