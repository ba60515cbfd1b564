"""Programs to look for bugs in: compiled ones, compiled ones with one change, and short random ones. All are plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, cast

from tpucc import api
from tpucc.diagnostics import counted
from tpucc.labs.break_it.faulty import DETECTORS, NOTHING
from tpucc.labs.break_it.rules import ENGINES, Faults, Plain, PlainInstruction, Rule, plain

WAITS, RELAYS = 0.6, 0.2
"""How many instructions of short programs are waits, where these matter, and how many programs are relays."""
CHOSEN_AMONG = 500
"""Short programs of which some are chosen."""


@dataclass(frozen=True)
class Case:
    """A program, what was done to it, and its faults."""

    program: Plain
    change: str
    faults: Faults

    def verdict(self, found: Set[int]) -> tuple[bool, list[int]]:
        """What is said of an answer: whether it misses the first fault, and what it reports that is none."""
        return bool(self.faults) and min(self.faults) not in found, sorted(found - set(self.faults))


@cache
def compiled(batch: int, inputs: int, middle: int) -> Plain:
    """A network with a skip, as it is compiled for the small machine: no rule is broken."""
    exe = api.compile_source(MODEL, params={"batch": batch, "inputs": inputs, "middle": middle}, target="tiny")
    return plain(exe.program.value)


MODEL = Path(__file__).with_name("model.tpu").read_text("utf-8")

Numbers = list[PlainInstruction]
Change = Callable[[Random, Numbers, int], str]
"""Changes a program's instruction, and says what was done; an empty text where there was nothing to change. No list is changed in place."""


def _drop(draw: Random, code: Numbers, at: int) -> str:
    return f"instruction {at}, {code.pop(at)['name']}, was taken out" if code[at]["name"] != "halt" else ""


def _double(draw: Random, code: Numbers, at: int) -> str:
    code.insert(at, code[at].copy())
    return f"instruction {at}, {code[at]['name']}, stands there twice"


def _move(draw: Random, code: Numbers, at: int) -> str:
    to = min(len(code) - 1, max(0, at + draw.choice((-3, -2, -1, 1, 2, 3))))
    code.insert(to, code.pop(at))
    return f"instruction {at}, {code[to]['name']}, was moved to {to}" if to != at else ""


def _shift(draw: Random, code: Numbers, at: int) -> str:
    kind = draw.choice(("reads", "writes", "sums"))
    by = draw.choice((-1, 1, 2))
    each = cast(dict[str, list[int]], code[at])
    names = ("sums_read", "sums_written") if kind == "sums" else (kind,)
    changed = [row for name in names for row in each[name]]
    if not changed or min(changed) + by < 0:
        return ""
    each |= {name: [row + by for row in each[name]] for name in names}
    return f"the {kind} of instruction {at}, {each['name']}, were moved {'up' if by > 0 else 'down'} by {counted(abs(by), 'row')}"


def _accumulate(draw: Random, code: Numbers, at: int) -> str:
    each = code[at]
    each["sums_read"] = [] if each["sums_read"] or not each["sums_written"] else list(each["sums_written"])
    return f"the flag accumulate of instruction {at}, {each['name']}, was turned over" if each["sums_written"] else ""


def _switch(draw: Random, code: Numbers, at: int) -> str:
    each = code[at]
    each["switch"] = not each["switch"]
    return f"the flag switch of instruction {at}, {each['name']}, was turned over" if each["sums_written"] else ""


def _wait(draw: Random, code: Numbers, at: int) -> str:
    each = code[at]
    if not each["waits"]:
        return ""
    engine, others = each["waits"][0]
    other = draw.choice([name for name in ENGINES if name != engine and name not in others])
    each["waits"] = [(engine, [other, *others[1:]]), *each["waits"][1:]]
    return f"instruction {at} makes {engine} wait for {other} instead of {others[0]}"


CHANGES: dict[str, Sequence[Change]] = {
    "unwritten": (_drop, _move, _shift, _double),
    "lost": (_drop, _move, _shift, _accumulate, _double),
    "fifo": (_drop, _move, _switch, _double),
    "race": (_drop, _move, _shift, _wait),
}
"""What is done to programs, by the name of the rule: what can break it."""


def mutants(rule: Rule, draw: Random, bases: Sequence[Plain], bugs: int, harmless: int) -> list[Case]:
    """Programs with one change each: so many that break the rule by it, and so many that don't."""

    def made() -> Case | None:
        base = draw.choice(bases)
        code = [each.copy() for each in base["instructions"]]
        change = draw.choice(CHANGES[rule.name])
        told = change(draw, code, draw.randrange(len(code)))
        program = Plain(fifo=base["fifo"], instructions=code)
        return Case(program, told, rule.faults(program)) if told else None

    return _several(draw, made, bugs, harmless)


def short(rule: Rule, draw: Random, bugs: int, harmless: int) -> list[Case]:
    """Short random programs: so many that break the rule, and so many that don't. Some of them were chosen among others, so that each of
    the rule's wrong detectors fails on a few, if it can."""

    def made() -> Case:
        waits = WAITS if rule.name == "race" else 0
        code = _relay(draw) if waits and draw.random() < RELAYS else _random(draw, waits)
        program = Plain(fifo=draw.choice((1, 2, 3)), instructions=list(code))
        return Case(program, "", rule.faults(program))

    detectors = DETECTORS[rule.name]
    few = min(bugs, harmless) // len(detectors)
    drawn = [made() for _ in range(CHOSEN_AMONG if few else 0)]
    chosen = dict[int, Case]()
    for detector in detectors:
        failed = (number for number, case in enumerate(drawn) if any(case.verdict(detector.find(case.program, rule))))
        chosen |= {number: drawn[number] for number in islice(failed, few)}
    return _several(draw, made, bugs, harmless, list(chosen.values()))


def _several(draw: Random, make: Callable[[], Case | None], bugs: int, harmless: int, first: Sequence[Case] = ()) -> list[Case]:
    """Cases that are made until so many break the rule and so many don't, the `first` among them, in an order that says nothing."""
    broken, sound = [case for case in first if case.faults], [case for case in first if not case.faults]
    while len(broken) < bugs or len(sound) < harmless:
        if (case := make()) is not None:
            kept, most = (broken, bugs) if case.faults else (sound, harmless)
            kept += [case] * (len(kept) < most)
    draw.shuffle(cases := broken + sound)
    return cases


def _random(draw: Random, waits: float) -> Iterator[PlainInstruction]:
    """Instructions on a few rows, so that they meet often; `waits` is the share of waits among them."""
    yield _instruction("read_host_memory", "host", writes=list(range(draw.randint(1, 5))))
    for _ in range(draw.randint(4, 14)):
        yield _synchronize(draw) if draw.random() < waits else _any(draw)


def _relay(draw: Random) -> Iterator[PlainInstruction]:
    """Two engines touch a row, and a third one waits for the first before the second waits for it: that orders the two if the third does
    something in between."""
    first, second, third = draw.sample(("host", "matrix", "activation"), 3)
    row, other = draw.sample(range(5), 2)
    yield _touching(third, other)
    yield _touching(first, row)
    yield _waiting(third, [first])
    if draw.random() < 0.5:
        yield _touching(third, other)
    yield _waiting(second, [third])
    yield _touching(second, row)


def _touching(engine: str, row: int) -> PlainInstruction:
    """An instruction of an engine that touches a row of the unified buffer."""
    match engine:
        case "host":
            return _instruction("read_host_memory", engine, writes=[row])
        case "matrix":
            return _instruction("matrix_multiply", engine, reads=[row], sums_written=[row])
        case _:
            return _instruction("vector", engine, reads=[row], writes=[row])


def _synchronize(draw: Random) -> PlainInstruction:
    engine = draw.choice(ENGINES)
    return _waiting(engine, draw.sample([name for name in ENGINES if name != engine], draw.choice((1, 1, 2))))


def _waiting(engine: str, others: list[str]) -> PlainInstruction:
    return _instruction("synchronize", "control", waits=[(engine, others)])


def _any(draw: Random) -> PlainInstruction:
    rows, sums = _rows(draw), _rows(draw)
    match draw.randrange(7):
        case 0:
            return _instruction("read_host_memory", "host", writes=rows)
        case 1:
            return _instruction("write_host_memory", "host", reads=rows)
        case 2:
            return _instruction("read_weights", "weights", tile=draw.randrange(3))
        case 3 | 4:
            name, added = draw.choice(("matrix_multiply", "convolve")), draw.random() < 0.4
            switch = draw.random() < 0.5
            return _instruction(name, "matrix", reads=rows, sums_written=sums, sums_read=list(sums) if added else [], switch=switch)
        case 5:
            return _instruction("activate", "activation", sums_read=sums, writes=rows)
        case _:
            return _instruction("vector", "activation", reads=rows, writes=list(rows) if draw.random() < 0.3 else _rows(draw))


def _rows(draw: Random) -> list[int]:
    """One to three rows of five, perhaps with a hole."""
    start, stride = draw.randrange(3), draw.choice((1, 1, 2))
    return [start + stride * step for step in range(draw.randint(1, 3 - start // 2))]


def _instruction(name: str, engine: str, **more: Any) -> PlainInstruction:
    """An instruction that does nothing but what `more` says."""
    return cast(PlainInstruction, {**NOTHING, "name": name, "engine": engine, **more})
