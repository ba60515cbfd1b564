"""Fails `nothing to wait for`: row 3 of the buffer and accumulator 3 are one to it."""

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
    return set(buffer) | set(touched.accumulators.tolist())
