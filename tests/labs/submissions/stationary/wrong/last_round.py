"""Fails `few places`: forgets the blocks that are left when the others have been taken so many at a time."""


def blocks(rows, columns, places):
    stay = places - 1
    return [(first + kept, column) for first in range(0, rows - stay + 1, stay) for column in range(columns) for kept in range(stay)]
