"""Fails `few places`: goes to and fro, which saves a load a row, and lets one block stay."""


def blocks(rows, columns, places):
    return [(row, column) for row in range(rows) for column in range(columns)[:: -1 if row % 2 else 1]]
