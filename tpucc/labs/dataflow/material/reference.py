"""Lab 13, a solution for every term."""

INPUTS = {{inputs}}
KEPT = {{kept}}
ANYWHERE = {{anywhere}}


def live(listing, parts, stays=None):
    code = list(listing)
    found = [set() for _ in code]
    begins = [set() for _ in parts]
    changed = True
    while changed:
        changed = False
        for p in reversed(range(len(parts))):
            first, end, after = parts[p]
            rows = set().union(*(begins[q] for q in after))
            if ANYWHERE or not after:
                rows |= KEPT
            for n in reversed(range(first, end)):
                found[n] = rows
                if stays is None or n in stays:
                    rows = live_before(code[n], rows)
            changed = changed or rows != begins[p]
            begins[p] = rows
    return found


def live_before(i, rows):
    if not is_needed(i, rows):
        return rows
    return rows - set(i.writes.buffer) | set(i.reads.buffer)


def is_needed(i, rows):
    return len(i.writes.host) > 0 or bool(rows & set(i.writes.buffer))


def held(listing, parts, stays=None):
    code = list(listing)
    found = [set() for _ in code]
    begins = [None for _ in parts]
    begins[0] = set()
    work = [0]
    while work:
        first, end, after = parts[p := work.pop()]
        pairs = {(row, host) for row, host in begins[p] if host >= INPUTS}
        for n in range(first, end):
            found[n] = pairs
            if stays is None or n in stays:
                pairs = held_after(code[n], pairs)
        for q in after:
            both = pairs if begins[q] is None else begins[q] & pairs
            if both != begins[q]:
                begins[q] = both
                work.append(q)
    return found


def held_after(i, pairs):
    rows, hosts = set(i.writes.buffer), set(i.writes.host)
    pairs = {(row, host) for row, host in pairs if row not in rows and host not in hosts}
    return pairs | moved(i)


def moved(i):
    """What a transfer makes equal: pairs of a row and a host's row. Of a vector instruction nothing."""
    if len(i.writes.host):
        return set(zip(i.reads.buffer, i.writes.host, strict=True))
    return set(zip(i.writes.buffer, i.reads.host, strict=False))


def clean(listing, parts):
    code = list(listing)
    stays = set(range(len(code)))
    while True:
        before = len(stays)
        pairs = held(listing, parts, stays)
        stays -= {n for n in stays if len(code[n].reads.host) and moved(code[n]) <= pairs[n]}
        rows = live(listing, parts, stays)
        stays -= {n for n in stays if not is_needed(code[n], rows[n])}
        if len(stays) == before:
            return sorted(stays)
