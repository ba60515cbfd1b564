"""Fails `two tiles`: returns the new place of each instruction, not which stands at each place."""


def order(tiles):
    code = list(tiles)
    multiplies = [i.index for i in code if i.engine.name == "MATRIX"]
    found = list(range(len(code)))
    if len(multiplies) == 4:  # reads, then both chunks with each tile
        ends = [i.index for i in code if i.engine.name == "ACTIVATION"]
        reads = [i.index for i in code if i.text.startswith("read")]
        writes = [i.index for i in code if i.text.startswith("write")]
        a, b, c, d = multiplies
        found = [*reads, a, c, b, *ends[:2], d, *ends[2:], *writes]
    return [found.index(n) for n in range(len(code))]
