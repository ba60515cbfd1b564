"""Fails `hidden: engines that idle`: each wait stands right before the instruction that needs it, after work that needn't be awaited."""

PAGE = {{page}}


def synchronise(listing):
    waits, waited = [], {}
    for i, found in needs(listing):
        for other, index in found.items():
            if index > waited.get((i.engine.name, other), -1):
                waits.append((i.index, i.engine.name, [other]))
                waited[i.engine.name, other] = i.index - 1
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
