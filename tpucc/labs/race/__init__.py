"""Lab 9: a race. Any stage, or a pass, for networks that nobody has seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from tpucc.labs.judging import Scale, geometric_mean
from tpucc.labs.lab import Outcome, Submission, Term, Test, declared
from tpucc.labs.race.networks import MXU, SHARED, WASTES, Network, edges, first, race
from tpucc.labs.race.running import FUNCTIONS, Run, run
from tpucc.labs.timelines import Shown, slower, timelines_svg, timelines_text
from tpucc.plugins.failures import Failed
from tpucc.target import Target

CYCLES = Scale(0.37, 0.95)
"""Of the quotient of cycles and the plain program's, as a geometric mean."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The term's machine, and the waste that its networks have."""

    target: Target
    wastes: tuple[str, ...]


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("race")
    if draw is None:
        return Rules(machine(32, 2, 2), ("again", "one", SHARED))
    wastes = draw.sample(sorted(WASTES), 2)
    return Rules(machine(8 * draw.randrange(3, 7), draw.choice((1.6, 2, 2.5)), draw.randrange(2, 5)), (*wastes, SHARED))


def machine(accumulators: int, weight_bytes: float, tiles: int) -> Target:
    """A machine with so many rows of accumulators, bytes of weights a cycle, and tiles in the FIFO."""
    words = f"an {MXU}×{MXU} matrix unit, {accumulators} rows of accumulators"
    return Target(
        name="race",
        description=words,
        mxu=MXU,
        clock_hz=1e6,
        accumulator_rows=accumulators,
        unified_buffer_rows=4096,
        weight_fifo_tiles=tiles,
        weight_memory_bytes=2**20,
        weight_bandwidth=weight_bytes * 1e6,
        host_bandwidth=16e6,
    )


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    networks = list(race(Random(9), rules.wastes))
    return (
        Test("one network", 5, partial(right, [first(rules.wastes)], rules.target)),
        Test("race", 40, partial(raced, networks, rules.target, None)),
    )


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs: networks of the same families, and of the sizes at which mistakes hide."""
    unseen, networks = list(edges(draw, rules.target.accumulator_rows)), list(race(draw, rules.wastes))
    return (
        Test("edges", 10, partial(right, unseen, rules.target)),
        Test("race", 45, partial(raced, networks, rules.target, unseen)),
    )


def right(networks: Sequence[Network], target: Target, submission: Submission) -> Outcome:
    """Programs that must be right, and need not be fast."""
    functions, cycles = defined(submission), []
    for network in networks:
        found, problem = tried(network, target, submission, functions)
        if found is None or problem:
            return _wrong(network, problem, target, submission, functions)
        cycles.append(f"{found.cycles:,}")
    return Outcome(1, f"all values are right; {', '.join(cycles)} cycles")


def raced(networks: Sequence[Network], target: Target, edges: Sequence[Network] | None, submission: Submission) -> Outcome:
    """How fast the programs are, against the plain ones. One that is wrong loses all points. Only where `edges` are given, and right too,
    there are measures for the leaderboard."""
    functions, runs = defined(submission), list[Run]()
    for network in networks:
        found, problem = tried(network, target, submission, functions)
        if found is None or problem:
            return _wrong(network, problem, target, submission, functions)
        runs.append(found)
    quotient, slowest = geometric_mean([found.quotient for found in runs]), max(runs, key=lambda found: found.quotient)
    lines = "".join(f"\n{found.network.name:<10}{found.cycles:>7,} of {found.plain_cycles:>7,}: {found.quotient:.3f}" for found in runs)
    words = f"cycles ÷ the plain program's are {quotient:.3f} in the mean; {CYCLES}"
    title = f"{slowest.network.name}: {slowest.quotient:.3f} of the plain program's cycles"
    measures = {
        "cycles": round(geometric_mean([found.cycles for found in runs]), 1),
        **{found.network.name: found.cycles for found in runs},
    }
    share, why = CYCLES.share(quotient), slower(*_shown(slowest))
    return Outcome(
        share,
        "\n".join(filter(None, (f"{words}{lines}", why and f"{slowest.network.name}: {why}"))),
        given=f"the slowest is\n{slowest.network.text}",
        drawing=timelines_text(*_shown(slowest)),
        picture=partial(timelines_svg, title, *_shown(slowest), f"{words}; the slowest is drawn"),
        measures=measures if edges and right(edges, target, submission).passed else None,
        call=None,
    )


def tried(network: Network, target: Target, submission: Submission, functions: Sequence[str]) -> tuple[Run | None, str]:
    """The network compiled with these functions, if they make a program of it, and what is wrong with it."""
    try:
        found = run(network, target, submission, functions)
    except Failed as failure:
        return None, failure.words
    return found, found.wrong()


def defined(submission: Submission) -> list[str]:
    """What the submission defines of what it may. Raises `Failed` where that is nothing."""
    names = submission.defines()
    found = [name for name in FUNCTIONS if name in names]
    if not found:
        raise Failed("result", f"race.py defines none of {', '.join(FUNCTIONS)}")
    return found


def _shown(found: Run) -> tuple[Shown, Shown]:
    """The student's program above the plain one."""
    return Shown("yours", found.exe.runtime.program), Shown("plain program", found.plain.runtime.program)


def _wrong(network: Network, problem: str, target: Target, submission: Submission, functions: Sequence[str]) -> Outcome:
    """An outcome without points, which says of each function whether it is right alone."""
    verdicts = {name: tried(network, target, submission, (name,))[1] for name in functions} if len(functions) > 1 else {}
    alone = "; ".join(f"{name} alone is {'wrong' if problem else 'right'}" for name, problem in verdicts.items())
    given, expected = f"the network\n{network.text}", "the plain program's values, and no findings"
    return Outcome(0, f"{network.name}: {problem}", given, expected, alone, call=None)


def _words(rules: Rules) -> Mapping[str, str]:
    """What the handout says for this term."""
    target = rules.target
    return {
        "mxu": str(MXU),
        "accumulators": str(target.accumulator_rows),
        "fetch": str(target.tile_fetch_cycles),
        "fetch3": str(3 * target.tile_fetch_cycles),
        "fifo": str(target.weight_fifo_tiles),
        "wastes": "\n".join(_waste_lines(rules.wastes)),
        "waste_names": str(rules.wastes),
        "full": f"{CYCLES.full:.2f}",
        "none": f"{CYCLES.none:.2f}",
    }


def _waste_lines(wastes: Sequence[str]) -> Iterator[str]:
    for name in wastes:
        if name == SHARED:
            yield '- `h = relu(dense(x, 9, "h"))`, and once more `relu(dense(x, 9, "h"))`, with the same weights, of any `x`'
        else:
            yield f"- `{WASTES[name]}`"


LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden)
