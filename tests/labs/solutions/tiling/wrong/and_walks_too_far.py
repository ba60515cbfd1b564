"""Fails `many rows`: an instruction for a whole line, however long."""


def chunks(shape, first, count):
    """Rows that one instruction walks: at most MOST, of one line."""
    while count:
        *outer, line = shape
        lines, inner = divmod(first, line)
        place = [inner]
        for size in reversed(outer):
            lines, index = divmod(lines, size)
            place.insert(0, index)
        rows = min(count, line - inner)
        yield tuple(place), rows
        first, count = first + rows, count - rows
