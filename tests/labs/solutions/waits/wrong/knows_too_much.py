"""Fails `hidden: random listings`: a wait brings what the other engine knows by now, not what it knew at the instruction waited for."""

PAGE = {{page}}
ENGINES = ("HOST", "MATRIX", "ACTIVATION")


def synchronise(listing):
    waits, previous = [], {}
    clock = {engine: dict.fromkeys(ENGINES, -1) for engine in ENGINES}
    for i, found in needs(listing):
        engine = i.engine.name
        for other, index in found.items():
            if index > clock[engine][other]:
                before = max(index, previous.get(engine, -1)) + 1
                waits.append((before, engine, [other]))
                clock[engine] = {e: max(clock[engine][e], clock[other][e]) for e in ENGINES}
                clock[engine][other] = max(clock[engine][other], before - 1)
        previous[engine] = i.index
    return waits


def needs(listing):
    """For each instruction the last one of each other engine that must be finished."""
    writes, uses = {}, {}
    for i in listing:
        found, reads, written = {}, rows(i, i.reads), rows(i, i.writes)
        for place, before in [(place, writes) for place in reads] + [(place, uses) for place in written]:
            for other, index in before.get(place, {}).items():
                if other != i.engine.name:
                    found[other] = max(found.get(other, -1), index)
        for place in reads | written:
            uses.setdefault(place, {})[i.engine.name] = i.index
        for place in written:
            writes.setdefault(place, {})[i.engine.name] = i.index
        yield i, found


def rows(i, touched):
    buffer = touched.buffer.tolist()
    if i.engine.name == "HOST":
        buffer = [row // PAGE * PAGE + k for row in buffer for k in range(PAGE)]
    return {("buffer", row) for row in buffer} | {("sums", row) for row in touched.accumulators.tolist()}
