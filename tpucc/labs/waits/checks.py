"""Whether waits are right: every conflict is ordered, by the verifier's rules; no wait follows from the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import networkx as nx
import numpy as np

from tpucc.explain.comparison.pairs import spent
from tpucc.explain.timed import Timed
from tpucc.guest.values import Plain
from tpucc.isa.effects import Effects, Walks, effects
from tpucc.isa.verify.hazards import RULES, check, clocks
from tpucc.isa.verify.memories import memory_events
from tpucc.isa.verify.rules import Context, Violation
from tpucc.labs.lab import Term
from tpucc.labs.listings import program_of
from tpucc.labs.solutions import recorded
from tpucc.machines.v1 import Engine
from tpucc.plugins.failures import Failed, Unfit
from tpucc.schedule.hazards import conflicts
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Wait, waits_for
from tpucc.stages.replaced import read_wait
from tpucc.target import Target, load_target

NOTHING = "no instruction after it conflicts with one before it that it waits for"
FORM = "(before instruction, engine that waits, engines waited for)"
_ROW = re.compile(r"(unified-buffer|accumulator) row [\d,]*\d")


SIZES = {"unified_buffer_rows": 256, "accumulator_rows": 96}


@dataclass(frozen=True, slots=True)
class Rules:
    """The term's rules: the host link's pages have `page` rows; a wait may have to be for one engine only; some listings are for a machine
    with two matrix units (`twin`). Cycles are those of `target`."""

    page: int = 1
    single: bool = False
    twin: bool = False
    target: Target = field(default_factory=partial(load_target, "tiny", SIZES))

    @property
    def structure(self) -> str:
        return "two matrix units" if self.twin else ""


def rules(term: Term) -> Rules:
    """The rules of a term; without one, pages of one row, and waits for any number of engines."""
    draw = term.draw("waits")
    if draw is None:
        return Rules()
    page, single, bandwidth = draw.choice((2, 4, 8)), draw.random() < 0.5, draw.choice((3e6, 4e6, 6e6))
    return Rules(page, single, term.has_structure("waits"), load_target("tiny", {**SIZES, "host_bandwidth": bandwidth}))


def pages(touched: Effects, page: int) -> Effects:
    """The same with each transfer of the host link occupying whole pages of the unified buffer."""
    host = touched.engine == Engine.HOST

    def whole(walks: Walks) -> Walks:
        low, high = np.where(host, walks.low // page * page, walks.low), np.where(host, -(-walks.high // page) * page, walks.high)
        return replace(walks, low=low, high=high)

    return replace(touched, touches=tuple((memory, whole(walks) if memory.name == "ub" else walks) for memory, walks in touched.touches))


def built_in(listing: Listing, rules: Rules) -> list[Wait]:
    """The waits that tpucc's own function finds under these rules, in the order of their places."""
    found = sorted(waits_for(pages(effects(listing.records, listing.machine), rules.page), listing.machine), key=lambda wait: wait.before)
    return [Wait(w.before, w.engine, (o,)) for w in found for o in w.engines] if rules.single else found


@recorded
def built_in_spent(listing: Listing, rules: Rules) -> Mapping[str, int]:
    """What the cycles with these waits are spent on: the rows of the accounting. An archive for students has them, and no waits."""
    return spent(Timed(program_of(listing, built_in(listing, rules), rules.target)[0]))


def read_waits(found: Plain, listing: Listing, rules: Rules) -> list[Wait]:
    """A submission's answer as waits, in the order of their places. Raises `Failed`."""
    if not isinstance(found, list):
        raise Failed("result", f"returned {type(found).__name__}, expected a list of waits {FORM}")
    most = 6 * len(listing) + 6
    if len(found) > most:
        raise Failed("result", f"returned {len(found):,} waits for {len(listing):,} instructions, expected at most {most:,}")
    try:
        waits = [read_wait(entry, listing) for entry in found]
    except Unfit as unfit:
        raise Failed("result", unfit.message) from None
    if several := next((wait for wait in waits if rules.single and len(wait.engines) > 1), None):
        raise Failed("result", f"returned {as_words(several)}, a wait for {len(several.engines)} engines; a wait is for one in this term")
    return sorted(waits, key=lambda wait: wait.before)


class Unordered(NamedTuple):
    """A conflict that waits leave open, and its later instruction."""

    message: str
    later: int


def unordered(listing: Listing, waits: Sequence[Wait], rules: Rules) -> Unordered | None:
    """The first conflict that these waits leave open; None when all are ordered."""
    program, numbers = program_of(listing, waits, rules.target)
    context = Context(program)
    context.__dict__["effects"] = pages(context.effects, rules.page)
    first = min(_violations(context), key=lambda found: found.instruction, default=None)
    if first is None:
        return None
    later, earlier = (int(numbers[index]) for index in (first.instruction, first.other))
    rule = next(rule for rule in RULES if rule.code == first.code)
    row = _ROW.search(first.message)
    verb = {"V0801": "reads", "V0802": "overwrites", "V0803": "overwrites"}[first.code]
    done = {"V0801": "writes", "V0802": "reads", "V0803": "writes"}[first.code]
    where = row[0] if row else "a row"
    transfer = Engine.HOST in (listing[later].engine, listing[earlier].engine)
    paged = f" (the host link's pages have {rules.page} rows)" if rules.page > 1 and transfer else ""
    message = (
        f"{rule.code}, {rule.name}: instruction {later} `{listing[later].text}` {verb} {where}, which instruction {earlier} "
        f"`{listing[earlier].text}` {done}{paged}, and doesn't wait for it"
    )
    return Unordered(message, later)


def waits_of_instruction(listing: Listing, waits: Sequence[Wait], index: int) -> list[Wait]:
    """The waits that count for this instruction: those of its engine that stand behind its engine's previous one."""
    engines = effects(listing.records, listing.machine).engine.tolist()
    previous = max((n for n in range(index) if engines[n] == engines[index]), default=-1)
    return [wait for wait in waits if wait.engine == engines[index] and previous < wait.before <= index]


def _violations(context: Context) -> Iterator[Violation]:
    known = clocks(context.program.instructions, context.effects, context.program.machine)
    for memory in context.program.machine.memories:
        for events in memory_events(context, memory):
            yield from check(context, events, known, memory)


def needless(listing: Listing, waits: Sequence[Wait], rules: Rules) -> tuple[Wait, str] | None:
    """A wait, for one engine, without which all conflicts are still ordered, and what makes it so; None when each is needed.

    The waits must order all.
    """
    ordered, engines = _conflicts(listing, rules)
    single = _single(waits)
    for number, wait in enumerate(single):
        others = _order(engines, [*single[:number], *single[number + 1 :]])
        if all(nx.has_path(others, *pair) for pair in ordered):
            until, with_it = _order(engines, single[:number]), _order(engines, single[: number + 1])
            between = [pair for pair in ordered if (engines[pair[0]], engines[pair[1]]) == (wait.engines[0], wait.engine)]
            first = [pair for pair in between if pair[0] < wait.before <= pair[1]]
            first += [pair for pair in ordered if nx.has_path(with_it, *pair) and not nx.has_path(until, *pair)]
            return wait, _by(listing, min(first, key=lambda pair: pair[1]), others) if first else NOTHING
    return None


def _conflicts(listing: Listing, rules: Rules) -> tuple[list[tuple[int, int]], list[int]]:
    """The pairs of instructions that need an order, and the engine of each instruction."""
    touched = pages(effects(listing.records, listing.machine), rules.page)
    pairs = [(before, after) for after, needs in enumerate(conflicts(touched, listing.machine).tolist()) for before in needs if before >= 0]
    return pairs, touched.engine.tolist()


def _single(waits: Sequence[Wait]) -> list[Wait]:
    """The same waits, each for one engine."""
    return [wait._replace(engines=(other,)) for wait in waits for other in wait.engines]


def ordered_pairs(listing: Listing, waits: Sequence[Wait], rules: Rules) -> list[tuple[int, int]]:
    """The conflicts of two engines of which one doesn't wait for the other between them: other waits order these."""
    pairs, engines = _conflicts(listing, rules)
    direct = {(wait.engines[0], wait.engine, wait.before) for wait in _single(waits)}
    return [
        (one, other)
        for one, other in pairs
        if engines[one] != engines[other] and not any((engines[one], engines[other], n) in direct for n in range(one + 1, other + 1))
    ]


def instead(listing: Listing, conflict: tuple[int, int], waits: Sequence[Wait]) -> str:
    """Which of these waits have one instruction run before another."""
    return _by(listing, conflict, _order(effects(listing.records, listing.machine).engine.tolist(), _single(waits)))


def _order(engines: Sequence[int], waits: Sequence[Wait]) -> nx.DiGraph:
    """What certainly runs before what: an edge leads from each instruction to the next one of its engine, and for a wait, which it has as
    `wait`, from the last one that is waited for to the first one that waits."""
    order = nx.DiGraph()
    order.add_nodes_from(range(len(engines)))
    for wait in waits:
        before = [index for index, engine in enumerate(engines[: wait.before]) if engine == wait.engines[0]]
        after = [index for index, engine in enumerate(engines) if engine == wait.engine and index >= wait.before]
        order.add_edges_from(zip(before[-1:], after[:1], strict=False), wait=wait)
    for engine in set(engines):
        order.add_edges_from(pairwise(index for index, own in enumerate(engines) if own == engine))
    return order


def _by(listing: Listing, conflict: tuple[int, int], order: nx.DiGraph) -> str:
    """Which waits of this order have one instruction run before another."""
    edges = [order.edges[edge] for edge in pairwise(nx.shortest_path(order, *conflict))]
    words = " and ".join(as_words(edge["wait"]) for edge in edges if "wait" in edge)
    before, after = (f"instruction {index} `{listing[index].text}`" for index in conflict)
    return f"{after} comes after {before} by {words}"


def as_words(wait: Wait) -> str:
    """`(4, 'host', ['activation'])`, as a submission may write it."""
    return f"({wait.before}, {wait.engine.name.lower()!r}, {[engine.name.lower() for engine in wait.engines]})"
