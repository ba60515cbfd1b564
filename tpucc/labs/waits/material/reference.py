"""Lab 7, a solution: clocks. Each engine knows what is finished; waiting for another engine brings all that this one knew."""

PAGE = {{page}}
SINGLE = "one engine" in "{{single_rule}}"
ENGINES = {{engines}}


def synchronise(listing):
    """The waits."""
    code = list(listing)
    needs = all_needs(code)
    own = {engine: [i.index for i in code if i.engine.name == engine] for engine in ENGINES}
    knows = {engine: {-1: dict.fromkeys(ENGINES, -1)} for engine in ENGINES}  # the clock at each instruction
    clock = {engine: dict.fromkeys(ENGINES, -1) for engine in ENGINES}
    waits = []
    for i in code:
        engine = i.engine.name
        if engine not in ENGINES:
            continue
        previous = last(own[engine], i.index)
        found = []
        for other, needed in needs[i.index].items():
            if needed > clock[engine][other]:
                before = max(needed, previous) + 1
                found.append((before, other, last(own[other], before), needed))
        for wait in list(found):
            if any(o is not wait and knows[o[1]][o[2]][wait[1]] >= wait[3] for o in found):
                found.remove(wait)
        for _, other, until, _ in found:
            for e in ENGINES:
                clock[engine][e] = max(clock[engine][e], knows[other][until][e])
            clock[engine][other] = max(clock[engine][other], until)
        knows[engine][i.index] = dict(clock[engine])
        waits += joined(sorted(found), engine, own)
    return waits


def joined(found, engine, own):
    """Two waits are one where the earlier may stand later without waiting for more."""
    places = []
    for before, other, until, _ in found:
        together = places and all(last(own[o], before) <= u for o, u in places[-1][1])
        if together and not SINGLE:
            places[-1] = (before, [*places[-1][1], (other, until)])
        else:
            places.append((before, [(other, until)]))
    return [(before, engine, [other for other, _ in others]) for before, others in places]


def last(numbers, before):
    return max((n for n in numbers if n < before), default=-1)


def all_needs(code):
    """For each instruction the last one of each other engine that must be finished."""
    writes, uses, needs = {}, {}, []
    for i in code:
        found = {}
        reads, written = rows(i, i.reads), rows(i, i.writes)
        for place, before in [(place, writes) for place in reads] + [(place, uses) for place in written]:
            for other, index in before.get(place, {}).items():
                if other != i.engine.name:
                    found[other] = max(found.get(other, -1), index)
        for place in reads | written:
            uses.setdefault(place, {})[i.engine.name] = i.index
        for place in written:
            writes.setdefault(place, {})[i.engine.name] = i.index
        needs.append(found)
    return needs


def rows(i, touched):
    buffer = touched.buffer.tolist()
    if i.engine.name == "HOST":
        buffer = [page * PAGE + k for page in {row // PAGE for row in buffer} for k in range(PAGE)]
    return {("buffer", row) for row in buffer} | {("sums", row) for row in touched.accumulators.tolist()}
