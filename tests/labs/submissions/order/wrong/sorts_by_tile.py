"""Fails `valid orders`: brings multiplies of one tile together, whether their rows are there or not."""


def order(tiles):
    tile = tiles.instructions["index"].tolist()
    code = list(tiles)
    multiplies = sorted((i.index for i in code if i.engine.name == "MATRIX"), key=lambda n: tile[n])
    reads = [i.index for i in code if i.text.startswith("read_host_memory")]
    rest = [i.index for i in code if i.engine.name != "MATRIX" and i.index not in reads]
    return reads + multiplies + rest
