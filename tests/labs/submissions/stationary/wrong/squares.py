"""Fails `few places`: computes squares of blocks, half of the places for each side, as one does where results stay."""


def blocks(rows, columns, places):
    side = max(1, places // 2)
    corners = [(row, column) for row in range(0, rows, side) for column in range(0, columns, side)]
    return [
        (row, column)
        for top, left in corners
        for row in range(top, min(top + side, rows))
        for column in range(left, min(left + side, columns))
    ]
