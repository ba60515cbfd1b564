"""Fails `few places`: one block of x stays, and all blocks of w pass by for each."""


def blocks(rows, columns, places):
    return [(row, column) for row in range(rows) for column in range(columns)]
