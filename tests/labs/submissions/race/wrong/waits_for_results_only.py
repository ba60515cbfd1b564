"""Fails `one network`: what is read is waited for, but rows that are still read are written."""

ROW_ENGINES = ("HOST", "MATRIX", "ACTIVATION")


def synchronise(listing):
    waits, written = [], {engine: set() for engine in ROW_ENGINES}
    for instruction in listing:
        engine = instruction.engine.name
        if engine not in ROW_ENGINES:
            continue
        for other in ROW_ENGINES:
            if other != engine and not written[other].isdisjoint(rows(instruction.reads)):
                waits.append((instruction.index, engine, [other]))
                written[other] = set()
        written[engine] |= rows(instruction.writes)
    return waits


def rows(touched):
    return {("buffer", row) for row in touched.buffer.tolist()} | {("sums", row) for row in touched.accumulators.tolist()}
