"""Fails `weight tiles`: goes from chain to chain, but moves each sum whole, so that its tiles are fetched for every chunk of rows."""

from itertools import pairwise

TRANSFERS = "{{transfers}}"


def order(tiles):
    code = list(tiles)
    blocks, begun = [], []
    for i in code:
        begun.append(i)
        if i.engine.name == "HOST" or i.text.startswith("activate"):
            blocks.append(begun)
            begun = []
    maker = {row: n for n, block in enumerate(blocks) for i in block for row in i.writes.buffer.tolist()}
    needs = [{maker[row] for i in block for row in i.reads.buffer.tolist()} - {n} for n, block in enumerate(blocks)]
    transfers = [n for n, block in enumerate(blocks) if block[0].engine.name == "HOST"]
    if TRANSFERS == "kept":
        for before, after in pairwise(transfers):
            needs[after].add(before)
    level = [0] * len(blocks)
    for n in range(len(blocks)):
        level[n] = 1 + max((level[m] for m in needs[n] if n not in transfers), default=0)
    done = []
    while len(done) < len(blocks):
        ready = [n for n in range(len(blocks)) if n not in done and needs[n] <= set(done)]
        done.append(min(ready, key=lambda n: (n not in transfers, level[n], n)))
    return [i.index for n in done for i in blocks[n]]
