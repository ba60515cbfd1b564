"""Lab 0: short programs for a small machine, each an idea."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError, printable
from tpucc.labs.lab import Outcome, Submission, Term, Test, declared
from tpucc.labs.puzzles.draws import rules
from tpucc.labs.puzzles.puzzle import Puzzle, puzzles
from tpucc.plugins.failures import Failed

RIGHT = 0.5
"""The share of a puzzle whose outputs are right, beyond a limit of the puzzle's: for what the file has to begin with there is none."""
SLACK = 4
"""How many instructions more than the best known earn nothing for brevity."""
FEW = 2
"""So many unsolved puzzles lose all points for brevity."""
POINTS = 3
"""Of a puzzle on one draw of numbers."""


def puzzle(number: int, term: Term) -> Puzzle:
    """A puzzle by its number, from 1. Raises `UsageError` E0550 when there is none."""
    known = puzzles(term)
    if not 1 <= number <= len(known):
        raise UsageError(Diagnostic("E0550", f"there is no puzzle {printable(str(number))}", help=(f"there are 1 to {len(known)}",)))
    return known[number - 1]


def solved(asked: Puzzle, seed: int, submission: Submission) -> Outcome:
    """One puzzle, on the numbers of a seed."""
    verdict = asked.check(submission.text(asked.file), seed)
    message = f"{verdict.message}\n{verdict.why}".strip()
    begun = asked.slow is None or verdict.cycles < asked.slow
    return Outcome(
        1 if verdict.solved else RIGHT if verdict.right and begun else 0, message, verdict.given, verdict.expected, verdict.found
    )


def brief(asked: Sequence[Puzzle], seed: int, submission: Submission) -> Outcome:
    """How few instructions the solved puzzles have; their number, for the leaderboard, when all are solved."""
    sizes = [_size(each, seed, submission) for each in asked]
    spare = [0 if size is None else min(SLACK, max(0, size - each.best)) for each, size in zip(asked, sizes, strict=True)]
    longer = [str(each.number) for each, size, more in zip(asked, sizes, spare, strict=True) if more or size is None]
    found = f"unsolved, or longer than the best known: {', '.join(longer)}" if longer else ""
    known = [size for size in sizes if size is not None]
    message = f"{sum(known)} instructions in {len(known)} solved puzzles; the best known have {sum(each.best for each in asked)} in all"
    measures = {"instructions": sum(known)} if len(known) == len(asked) else None
    share = 1 - sum(spare) / SLACK / len(asked) - sizes.count(None) / FEW
    return Outcome(max(0.0, share), message, found=found, measures=measures)


def _size(asked: Puzzle, seed: int, submission: Submission) -> int | None:
    """The instructions of a solution; None where there is none."""
    try:
        verdict = asked.check(submission.text(asked.file), seed)
    except Failed:
        return None
    return verdict.instructions if verdict.solved else None


def _public(asked: Sequence[Puzzle]) -> Sequence[Test]:
    """Each puzzle on numbers that stay the same."""
    return tuple(Test(each.title, POINTS, partial(solved, each, each.number)) for each in asked)


def _hidden(asked: Sequence[Puzzle], draw: Random, _: str) -> Sequence[Test]:
    """Each puzzle on numbers that nobody has seen, and the length of all."""
    fresh = [Test(each.title, POINTS, partial(solved, each, draw.randrange(2**32))) for each in asked]
    return (*fresh, Test("few instructions", 100 - 2 * POINTS * len(asked), partial(brief, asked, draw.randrange(2**32))))


def _words(asked: Sequence[Puzzle]) -> Mapping[str, Any]:
    """The term's numbers, and what follows from them."""
    term_rules, machine = rules(asked[0].term), asked[0].target
    column_sums = term_rules.weights.sum(axis=0).tolist()
    tile01, tile10 = (2, 1) if term_rules.turned else (1, 2)
    return {
        **term_rules.words,
        "machine": machine,
        "example_cycles": machine.tile_fetch_cycles + machine.tile_shift_cycles + machine.pipeline_cycles + 3,
        "rows3": 3 * term_rules.rows,
        "table_block": term_rules.tables.index(term_rules.table),
        "biased": 1 if term_rules.turned else 2,
        "relu": 0 if term_rules.turned else 1,
        "window": 3 * term_rules.stride + 3,
        "bias": " ".join(str(-term_rules.zero_x * value) for value in column_sums),
        "multiplier": 0.5**term_rules.shift,
        "tile01": tile01,
        "tile10": tile10,
        "points": 2 * POINTS,
        "brevity": 100 - 2 * POINTS * len(asked),
        "slack": SLACK,
        "few": FEW,
        "count": len(asked),
        "list": "\n".join(f"| {each.number} | `{each.file}` | {each.idea} | {each.best} |" for each in asked),
    }


def _begun(asked: Sequence[Puzzle]) -> Mapping[str, str]:
    """The files that a student begins with: each puzzle's task as a comment, and its first lines."""
    return {each.file: each.begun for each in asked}


LAB = declared(Path(__file__).parent, rules=puzzles, words=_words, public=_public, hidden=_hidden, begun=_begun)
