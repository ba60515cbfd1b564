"""Lab 14: programs for a core that trains, written by hand: a layer's result and its gradients, right and fast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tpucc.diagnostics import Error, ProgramError, counted
from tpucc.isa.assembler import read_listing
from tpucc.isa.listing.lines import ListingSpans
from tpucc.isa.program import Program
from tpucc.isa.verify import Violation, raise_violations, verify
from tpucc.labs.judging import Scale, outcome_of
from tpucc.labs.kernel.kernels import Block, Kernel, Rules, Values, rules
from tpucc.labs.lab import MATERIAL, Outcome, Submission, Test, Wrong, declared, filled, judging_seed, words_of
from tpucc.labs.listings import not_plain
from tpucc.labs.solutions import is_archive, recorded
from tpucc.labs.timelines import units_text
from tpucc.see.charts.units import units_svg
from tpucc.sim.timing import Timeline, time_program
from tpucc.training.repeated import Repeated, run_together

FOLDER = Path(__file__).parent
DIRECTIVES = ("expression", "resident", "end")
"""What a listing of a student's may have besides instructions."""
LATER = frozenset({"V0603", "V0801", "V0802", "V0803", "V1002"})
"""Rules that a program may break while its values are looked at: a tile isn't used, a wait or an output is missing."""
FULL = 1.02
NONE: Mapping[str, float] = {"forward": 1.55, "gradient": 2.0}
"""How many times the cycles of the lab's own program earn all points, and none: one thing after the other takes longer."""
LONGEST = 10
"""How many times these cycles a program may take that is executed."""


@dataclass(frozen=True, eq=False)
class Done:
    """What a student's program does: the rules that it breaks, its time, and the blocks of its outputs that are wrong, in words."""

    program: Program
    places: ListingSpans
    broken: Sequence[Violation]
    time: Timeline
    wrong: Sequence[str]

    def require_right(self) -> None:
        """Raises `Wrong` unless all values are right and the verifier accepts the program."""
        _require_none(self.broken, self.program, self.places)
        if self.wrong:
            raise Wrong(self.wrong[0])

    def pictures(self, least: float = 0) -> dict[str, Any]:
        """The units' time, in characters and as a picture, and how long `least` cycles are."""
        drawing = units_text(self.program, self.time, "all points", round(least))
        return {"drawing": drawing, "picture": partial(units_svg, self.program, self.time)}


@recorded
def best(rules: Rules, name: str) -> int | None:
    """The cycles of the lab's own program. An archive for students has recorded them, and another lab's has None."""
    kernel: Kernel = getattr(rules, name)
    return None if is_archive() else time_program(read(kernel, _material("reference", kernel, rules))[0]).makespan


def scale(rules: Rules, kernel: Kernel) -> Scale:
    """The cycles that earn all points, and none. Raises `NotImplementedError` where they aren't known."""
    if (cycles := best(rules, kernel.name)) is None:
        raise NotImplementedError(f"lab 14: write {kernel.file}")
    return Scale(round(FULL * cycles), round(NONE[kernel.name] * cycles))


def _material(folder: str, kernel: Kernel, rules: Rules) -> str:
    return filled((FOLDER / MATERIAL / folder / kernel.file).read_text("utf-8"), words_of(rules))


def read(kernel: Kernel, text: str) -> tuple[Program, ListingSpans]:
    """The program of a student's text, before which nothing stands, so that it keeps its line numbers. Raises `Wrong`."""
    if (found := not_plain(text, "lab", DIRECTIVES)) is not None:
        raise Wrong(found[1])
    try:
        return read_listing(text.rstrip("\n") + "\n" + kernel.directives, kernel.file)
    except Error as error:
        raise Wrong(error.render(1)) from None


def done(rules: Rules, kernel: Kernel, submission: Submission, seed: int | None = None) -> Done:
    """What a submission's program does with the numbers of a seed, or of the one that is behind a grade. Raises `Wrong` if that can't be
    found out."""
    program, places = read(kernel, submission.text(kernel.file))
    broken = verify(program, places)
    _require_none([each for each in broken if each.code not in LATER], program, places)
    time, most = time_program(program), LONGEST * scale(rules, kernel).full
    if time.makespan > most:
        raise Wrong(f"the program takes {counted(time.makespan, 'cycle')}; of more than {most:,g} none is executed")
    return Done(program, places, broken, time, _wrong(kernel, program, kernel.drawn(judging_seed() if seed is None else seed)))


def _require_none(broken: Sequence[Violation], program: Program, places: ListingSpans) -> None:
    """Raises `Wrong` with the first rule that is broken, and its line."""
    try:
        raise_violations(program, broken[:1], None, places.source, places)
    except ProgramError as error:
        raise Wrong(error.render()) from None


def _wrong(kernel: Kernel, program: Program, given: Values) -> Sequence[str]:
    """The blocks of outputs that the program doesn't compute rightly, in words. All that no input fills is NaN at first."""
    core = Repeated(program)
    for rows in core.memories.rows.values():
        rows[...] = np.nan
    hbm: Any = core.memories.buffers
    for block in kernel.blocks:
        if block.kind == "input":
            hbm[block.start : block.start + block.rows, : block.lanes] = block.part(given)
    run_together([core])
    goal, outputs = kernel.makes(given), [block for block in kernel.blocks if block.kind == "output"]
    return [words for block in outputs if (words := _difference(block, hbm[block.start :][: block.rows, : block.lanes], goal))]


def _difference(block: Block, found: Any, goal: Values) -> str:
    """How many values of a block are wrong, and the first; nothing where all bits are right."""
    wanted = np.ascontiguousarray(block.part(goal))
    other = np.argwhere(np.ascontiguousarray(found).view(np.uint32) != wanted.view(np.uint32))
    if not len(other):
        return ""
    row, lane = other[0].tolist()
    place = f"row {row}, lane {lane} is {found[row, lane]}, and should be {wanted[row, lane]}"
    return f"{block.name}: {len(other):,} of {counted(wanted.size, 'value')} are wrong; {place}"


def right(rules: Rules, kernel: Kernel, submission: Submission, seed: int | None = None) -> Outcome:
    """The values: each column block of the outputs earns its share. Waits may be missing."""
    found = done(rules, kernel, submission, seed)
    count = sum(block.kind == "output" for block in kernel.blocks)
    message = f"{count - len(found.wrong)} of {counted(count, 'column block')} are right"
    return Outcome(1 - len(found.wrong) / count, "; ".join([message, *found.wrong[:1]]), **found.pictures())


def accepted(rules: Rules, kernel: Kernel, submission: Submission) -> Outcome:
    """The verifier's word on a program whose values are right."""
    found = done(rules, kernel, submission)
    found.require_right()
    return Outcome(1, f"the verifier accepts {counted(len(found.program.instructions), 'instruction')}")


def fast(rules: Rules, kernel: Kernel, submission: Submission) -> Outcome:
    """The cycles of a program that is right."""
    found = done(rules, kernel, submission)
    found.require_right()
    cycles, limits = found.time.makespan, scale(rules, kernel)
    message = f"{counted(cycles, 'cycle')}; {limits.full:,g} earn all points, {limits.none:,g} none"
    return Outcome(limits.share(cycles), message, measures={"cycles": cycles}, **found.pictures(limits.full))


def both_fast(rules: Rules, submission: Submission) -> Outcome:
    """The cycles of both programs, each with half of the points; their sum, for the leaderboard, when both are right."""
    found = [outcome_of(partial(fast, rules, kernel, submission)) for kernel in rules.kernels]
    message = "; ".join(f"{kernel.name}: {outcome.message}" for kernel, outcome in zip(rules.kernels, found, strict=True))
    cycles = [outcome.measures["cycles"] for outcome in found if outcome.measures]
    return Outcome(sum(outcome.share for outcome in found) / 2, message, measures={"cycles": sum(cycles)} if len(cycles) == 2 else None)


VALUES, ACCEPTED, CYCLES, BOTH = 10, 5, 10, 30
"""The points of a kernel's public tests, and those that both together have for their cycles in a hidden one."""


def _public(rules: Rules) -> Sequence[Test]:
    """Of each kernel the values, the verifier's word, and the cycles."""
    asked = (("values", VALUES, right), ("accepted", ACCEPTED, accepted), ("cycles", CYCLES, fast))
    return [
        Test(f"{kernel.name}: {name}", points, partial(test, rules, kernel)) for kernel in rules.kernels for name, points, test in asked
    ]


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """The values of other numbers, and the cycles of both kernels."""
    values = [Test(f"{kernel.name}: values", VALUES, partial(right, rules, kernel, seed=draw.randrange(2**32))) for kernel in rules.kernels]
    return [*values, Test("cycles", BOTH, partial(both_fast, rules))]


def _words(rules: Rules) -> Mapping[str, Any]:
    """Points, and the cycles that earn all of them and none; the archive of another lab doesn't know these."""
    known = {kernel.name: best(rules, kernel.name) is not None for kernel in rules.kernels}
    scales = {each.name: scale(rules, each) if known[each.name] else Scale(math.nan, math.nan) for each in rules.kernels}
    return {"scales": scales, "points": {"values": VALUES, "accepted": ACCEPTED, "cycles": CYCLES, "both": BOTH}}


def _begun(rules: Rules) -> Mapping[str, str]:
    """The files that a student begins with."""
    return {kernel.file: _material("skeleton", kernel, rules) for kernel in rules.kernels}


LAB = declared(FOLDER, rules=rules, words=_words, public=_public, hidden=_hidden, begun=_begun)
