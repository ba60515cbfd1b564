"""Whether waits are right: every conflict is ordered, by the verifier's rules; no wait follows from the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from tpucc.diagnostics import Origin
from tpucc.explain.comparison.pairs import spent
from tpucc.explain.timed import Timed
from tpucc.guest.values import Plain
from tpucc.isa.effects import Effects, Walks, effects
from tpucc.isa.program import LayerInfo, Program, bare_program
from tpucc.isa.verify.hazards import RULES, check, clocks
from tpucc.isa.verify.memories import memory_events
from tpucc.isa.verify.rules import Context, Violation
from tpucc.labs.recorded import recorded
from tpucc.machines.v1 import V1, Engine
from tpucc.numerics import Int64
from tpucc.plugins.failures import Failed
from tpucc.schedule.hazards import conflicts
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Wait, waits_for, with_waits
from tpucc.target import Target

FORM = "(before instruction, engine that waits, engines waited for)"
Told = tuple[int, tuple[int, ...]]
"""The last instruction of an engine that has certainly finished, -1 for none, and the numbers of the waits by which another knows it."""
_ROW = re.compile(r"(unified-buffer|accumulator) row [\d,]*\d")
_NAMES = {engine.name.lower(): Engine(engine) for engine in V1.row_units}


@dataclass(frozen=True, slots=True)
class Rules:
    """The term's rules: the host link's pages have `page` rows; a wait may have to be for one engine only."""

    page: int
    single: bool


def pages(touched: Effects, page: int) -> Effects:
    """The same with each transfer of the host link occupying whole pages of the unified buffer."""
    host = touched.engine == Engine.HOST

    def whole(walks: Walks) -> Walks:
        low, high = np.where(host, walks.low // page * page, walks.low), np.where(host, -(-walks.high // page) * page, walks.high)
        return replace(walks, low=low, high=high)

    return replace(touched, touches=tuple((memory, whole(walks) if memory.name == "ub" else walks) for memory, walks in touched.touches))


def built_in(listing: Listing, rules: Rules) -> list[Wait]:
    """The waits that tpucc's own function finds under these rules, in the order of their places."""
    found = sorted(waits_for(pages(effects(listing.records), rules.page)), key=lambda wait: wait.before)
    return [Wait(w.before, w.engine, (o,)) for w in found for o in w.engines] if rules.single else found


@recorded
def built_in_spent(listing: Listing, rules: Rules, target: Target) -> Mapping[str, int]:
    """What the cycles with these waits are spent on: the rows of the accounting. An archive for students has them, and no waits."""
    return spent(Timed(program_of(listing, built_in(listing, rules), target)[0]))


def read_waits(found: Plain, listing: Listing, rules: Rules) -> list[Wait]:
    """A submission's answer as waits, in the order of their places. Raises `Failed`."""
    if not isinstance(found, list):
        raise Failed("result", f"returned {type(found).__name__}, expected a list of waits {FORM}")
    most = 6 * len(listing) + 6
    if len(found) > most:
        raise Failed("result", f"returned {len(found):,} waits for {len(listing):,} instructions, expected at most {most:,}")
    return sorted((_wait(entry, len(listing), rules) for entry in found), key=lambda wait: wait.before)


def _wait(entry: Plain, count: int, rules: Rules) -> Wait:
    shown = repr(entry)[:80]
    if not isinstance(entry, list) or len(entry) != 3:
        raise Failed("result", f"returned {shown} as a wait, expected {FORM}")
    before, engine, others = entry
    if type(before) is not int or not 0 <= before <= count:
        raise Failed("result", f"returned {shown}, a wait before no instruction: they have the numbers 0 to {count - 1:,}")
    waits, named = _engine(engine, shown), others if isinstance(others, list) else [others]
    engines = tuple(dict.fromkeys(_engine(other, shown) for other in named[:10]))
    if not engines or waits in engines:
        raise Failed("result", f"returned {shown}, a wait of an engine for {'itself' if engines else 'none'}")
    if rules.single and len(engines) > 1:
        raise Failed("result", f"returned {shown}, a wait for {len(engines)} engines; a wait is for one in this term")
    return Wait(before, waits, engines)


def _engine(value: Plain, shown: str) -> Engine:
    known = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    found = _NAMES.get(value.lower()) if isinstance(value, str) else next((Engine(e) for e in V1.row_units if known and e == value), None)
    if found is None:
        raise Failed("result", f"returned {shown}, in which {repr(value)[:40]} is no engine; there are {', '.join(_NAMES)}")
    return found


def program_of(listing: Listing, waits: Sequence[Wait], target: Target) -> tuple[Program, Int64]:
    """A program of the listing with waits, and for each of its instructions the number in the listing, -1 for a wait.

    It is one layer, and all of its multiplies have one tile, as listings have no `read_weights`.
    """
    made = with_waits(replace(listing, placed=np.arange(len(listing))), waits)
    layer = np.zeros(len(made), np.uint32)
    parts = {"layers": (LayerInfo("listing", "listing", Origin(())),), "layer_of": layer, "written_tiles": 1}
    return bare_program(name="listing", target=target, instructions=made.records, **parts), made.placed


def unordered(listing: Listing, waits: Sequence[Wait], target: Target, page: int) -> str:
    """The first conflict that these waits leave open, in words; nothing when all are ordered."""
    program, numbers = program_of(listing, waits, target)
    context = Context(program)
    context.__dict__["effects"] = pages(context.effects, page)
    first = min(_violations(context), key=lambda found: found.instruction, default=None)
    if first is None:
        return ""
    later, earlier = (int(numbers[index]) for index in (first.instruction, first.other))
    rule = next(rule for rule in RULES if rule.code == first.code)
    row = _ROW.search(first.message)
    verb = {"V0801": "reads", "V0802": "overwrites", "V0803": "overwrites"}[first.code]
    done = {"V0801": "writes", "V0802": "reads", "V0803": "writes"}[first.code]
    where = row[0] if row else "a row"
    transfer = Engine.HOST in (listing[later].engine, listing[earlier].engine)
    paged = f" (the host link's pages have {page} rows)" if page > 1 and transfer else ""
    return (
        f"{rule.code}, {rule.name}: instruction {later} `{listing[later].text}` {verb} {where}, which instruction {earlier} "
        f"`{listing[earlier].text}` {done}{paged}, and doesn't wait for it"
    )


def _violations(context: Context) -> Iterator[Violation]:
    known = clocks(context.program.instructions, context.effects)
    for memory in context.program.machine.memories:
        for events in memory_events(context, memory):
            yield from check(context, events, known, memory)


def needless(listing: Listing, waits: Sequence[Wait], page: int) -> tuple[Wait, str] | None:
    """A wait, for one engine, without which all conflicts are still ordered, and what makes it so; None when each is needed.

    The waits must order all, and stand in the order of their places.
    """
    touched = pages(effects(listing.records), page)
    engines, needs = touched.engine.tolist(), conflicts(touched).tolist()
    single = [wait._replace(engines=(other,)) for wait in waits for other in wait.engines]
    for number, wait in enumerate(single):
        others = single[:number] + single[number + 1 :]
        if all(_is_ordered(needed, told) for needed, told in zip(needs, _known(engines, others), strict=True)):
            return wait, _instead(listing, needs, single, number)
    return None


def _is_ordered(needed: Sequence[int], told: Sequence[Told]) -> bool:
    return all(index <= finished for index, (finished, _) in zip(needed, told, strict=True))


def _instead(listing: Listing, needs: Sequence[Sequence[int]], waits: Sequence[Wait], number: int) -> str:
    """Which other waits order the first conflict that a needless one is for: one between its engines, or one that it tells others of."""
    wait, others = waits[number], [*waits[:number], *waits[number + 1 :]]
    engines = [listing[index].engine for index in range(len(listing))]
    for later, (told, without) in enumerate(zip(_known(engines, waits), _known(engines, others), strict=True)):
        for engine, earlier in enumerate(needs[later]):
            direct = engines[later] == wait.engine and engine == wait.engines[0] and earlier < wait.before <= later
            if earlier >= 0 and (direct or number in told[engine][1]):
                words = " and ".join(map(as_words, (others[each] for each in without[engine][1])))
                return f"instruction {later} `{listing[later].text}` comes after instruction {earlier} `{listing[earlier].text}` by {words}"
    return "no instruction after it conflicts with one before it that it waits for"


def as_words(wait: Wait) -> str:
    """`(4, 'host', ['activation'])`, as a submission may write it."""
    return f"({wait.before}, {wait.engine.name.lower()!r}, {[engine.name.lower() for engine in wait.engines]})"


def _known(engines: Sequence[int], waits: Sequence[Wait]) -> Iterator[Sequence[Told]]:
    """For each instruction, what its engine knows of each engine when it starts: a vector clock for each engine."""
    nothing: Sequence[Told] = [(-1, ())] * len(Engine)
    clock, last, known = [nothing] * len(Engine), [-1] * len(Engine), list[Sequence[Told]]()
    following = 0
    for index, engine in enumerate(engines):
        while following < len(waits) and waits[following].before <= index:
            waiting, (other,) = waits[following].engine, waits[following].engines
            brought = known[last[other]] if last[other] >= 0 else nothing
            both = zip(clock[waiting], brought, strict=True)
            own = [mine if mine[0] >= theirs[0] else (theirs[0], (*theirs[1], following)) for mine, theirs in both]
            own[other] = own[other] if own[other][0] >= last[other] else (last[other], (following,))
            clock[waiting] = own
            following += 1
        known.append(clock[engine])
        last[engine] = index
        yield clock[engine]
