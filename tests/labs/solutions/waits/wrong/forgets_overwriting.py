"""Fails `random listings`: an instruction waits for what it reads, and overwrites rows that others still read."""

PAGE = {{page}}


def synchronise(listing):
    waits, waited, previous = [], {}, {}
    for i, found in needs(listing):
        engine = i.engine.name
        for other, index in found.items():
            if index > waited.get((engine, other), -1):
                before = max(index, previous.get(engine, -1)) + 1
                waits.append((before, engine, [other]))
                waited[engine, other] = before - 1
        previous[engine] = i.index
    return waits


def needs(listing):
    """For each instruction the last one of each other engine that wrote what it reads."""
    writes = {}
    for i in listing:
        found = {}
        for place in rows(i, i.reads):
            for other, index in writes.get(place, {}).items():
                if other != i.engine.name:
                    found[other] = max(found.get(other, -1), index)
        for place in rows(i, i.writes):
            writes.setdefault(place, {})[i.engine.name] = i.index
        yield i, found


def rows(i, touched):
    buffer = touched.buffer.tolist()
    if i.engine.name == "HOST":
        buffer = [row // PAGE * PAGE + k for row in buffer for k in range(PAGE)]
    return {("buffer", row) for row in buffer} | {("sums", row) for row in touched.accumulators.tolist()}
