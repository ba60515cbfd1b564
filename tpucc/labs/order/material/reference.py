"""Lab 6, a solution: goes through time, and takes of what can be done next the multiply that starts first.

A change of tiles costs a fetch, so that it counts for more than its own delay: for how much, several are tried.
"""

SUMS = {{sums}}
TRANSFERS = "{{transfers}}"


def order(tiles):
    """The numbers of the instructions in their new order."""
    work = Work(tiles)
    found = [Run(work, penalty * work.fetch / 2).order() for penalty in range(5)]
    return min(found)[1]


class Work:
    """What there is to do: transfers, multiplies and activations, and who needs what."""

    def __init__(self, tiles):
        code, target = list(tiles), tiles.target
        self.kind = [i.text.split()[0] for i in code]
        self.fetch, self.shift, self.pipeline = target.tile_fetch_cycles, target.tile_shift_cycles, target.pipeline_cycles
        self.depth, self.room = target.weight_fifo_tiles, target.accumulator_rows
        self.tile, self.group = tiles.instructions["index"].tolist(), tiles.instructions["group"].tolist()
        self.rows = [max(1, len(i.reads.buffer), len(i.writes.buffer)) for i in code]
        host = [n for n, kind in enumerate(self.kind) if "host" in kind]
        self.cycles = {n: target.host_cycles(self.rows[n]) for n in host}
        self.transfers = host
        self.reads = [n for n in host if self.kind[n] == "read_host_memory"]
        self.multiplies = [n for n, i in enumerate(code) if i.engine.name == "MATRIX"]
        self.sums = {}
        for n in self.multiplies:
            self.sums.setdefault(self.group[n], []).append(n)
        self.sessions = sessions(code)
        maker = {row: n for n, i in enumerate(code) for row in i.writes.buffer.tolist()}
        self.needs = [{maker[row] for row in i.reads.buffer.tolist()} for i in code]
        self.path = self.paths(code)

    def paths(self, code):
        """For each instruction the cycles from its start to the end of all that needs it."""
        path = [0] * len(code)
        session = {n: s for s in self.sessions for n in s}
        ends = {group: n for n, group in enumerate(self.group) if self.kind[n] == "activate"}
        followers = [[] for _ in code]
        for n in range(len(code)):
            for maker in self.needs[n]:
                followers[maker].append(n)
        for n in reversed(range(len(code))):
            after = max((path[f] for f in followers[n]), default=0)
            if self.kind[n] in ("matrix_multiply", "convolve"):
                after = max(after, path[ends[self.group[n]]] + self.pipeline)
            path[n] = after + self.cycles.get(n, self.rows[n])
            if n in session:
                path[n] = max(path[n], path[session[n][-1]])
        return path


def sessions(code):
    """The instructions of the activation unit, each `set_configuration` with those that use it."""
    found = []
    for i in code:
        if i.engine.name == "ACTIVATION":
            if i.text.startswith("set_configuration"):
                found.append([])
            found[-1].append(i.index)
    return found


class Run:
    """An order in the making, with the times of all that is in it."""

    def __init__(self, work, penalty):
        self.work, self.penalty = work, penalty
        self.done, self.end = [], {}
        self.host = self.matrix = self.activation = self.fetched = 0
        self.shifted, self.taken, self.current = [], [], None
        self.left = {group: list(members) for group, members in work.sums.items()}
        self.open, self.sessions = set(), list(work.sessions)
        self.waiting = list(work.transfers)
        if TRANSFERS != "kept":
            reads = sorted(work.reads, key=lambda n: -self.urgency(n))
            self.waiting = reads + [n for n in work.transfers if n not in work.reads]

    def urgency(self, read):
        return max((self.work.path[n] for n, needs in enumerate(self.work.needs) if read in needs), default=0)

    def order(self):
        """The cycles that it takes, and the order."""
        self.move()
        self.activate()
        while any(self.left.values()):
            self.multiply(min(filter(self.possible, self.next_ones()), key=self.key))
            self.activate()
        return max(self.host, self.matrix, self.activation), self.done

    def next_ones(self):
        """The first multiply of each sum that isn't begun, and all that are left of one that is."""
        for group, left in self.left.items():
            yield from left if group in self.open else left[:1]

    def possible(self, n):
        work, group = self.work, self.work.group[n]
        if group in self.open:
            return True
        rows = sum(work.rows[work.sums[g][0]] for g in self.open) + work.rows[n]
        if rows > work.room or (SUMS and len(self.open) >= SUMS):
            return False
        return all(maker in self.end for m in work.sums[group] for maker in work.needs[m])

    def key(self, n):
        start = self.start(n) + (self.penalty if self.work.tile[n] != self.current else 0)
        return start, self.work.group[n] not in self.open, -self.work.path[n], n

    def start(self, n):
        start = max([self.matrix, *(self.end[maker] for maker in self.work.needs[n])])
        return start if self.work.tile[n] == self.current else max(start, self.shift()[1])

    def shift(self):
        """When the next tile would be there and shifted in."""
        place = len(self.taken) - self.work.depth
        arrived = max(self.fetched, self.shifted[place] if place >= 0 else 0) + self.work.fetch
        return arrived, max(arrived, self.taken[-1] if self.taken else 0) + self.work.shift

    def multiply(self, n):
        start, group = self.start(n), self.work.group[n]
        if self.work.tile[n] != self.current:
            self.fetched, shifted = self.shift()
            self.shifted.append(shifted)
            self.taken.append(start)
            self.current = self.work.tile[n]
        self.matrix = start + self.work.rows[n]
        self.end[n] = self.matrix + self.work.pipeline
        self.open.add(group)
        self.left[group].remove(n)
        self.done.append(n)

    def activate(self):
        """All that the activation unit can do now, and the transfers that follow from it."""
        while session := next((s for s in self.sessions if all(self.complete(n, s) for n in s)), None):
            self.sessions.remove(session)
            for n in session:
                group = self.work.group[n]
                needs = [self.end[m] for m in (*self.work.needs[n], *self.work.sums.get(group, ())) if m not in session]
                self.activation = self.end[n] = max([self.activation, *needs]) + self.work.rows[n]
                self.open.discard(group)
                self.done.append(n)
            self.move()

    def complete(self, n, session):
        makers = [*self.work.needs[n], *self.work.sums.get(self.work.group[n], ())]
        return all(maker in self.end or maker in session for maker in makers)

    def move(self):
        """The transfers that can be done now: the first ones only, where they keep their order."""
        for n in list(self.waiting):
            if all(maker in self.end for maker in self.work.needs[n]):
                self.host = self.end[n] = max([self.host, *(self.end[m] for m in self.work.needs[n])]) + self.work.cycles[n]
                self.waiting.remove(n)
                self.done.append(n)
            elif TRANSFERS == "kept":
                return
