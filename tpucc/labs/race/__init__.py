"""Lab 9: a race. Any stage, or a pass, for networks that nobody has seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

import tpucc
from tpucc.labs.lab import Failed, Lab, Outcome, Submission, Term, Test
from tpucc.labs.race.networks import MXU, SHARED, WASTES, Network, edges, first, race
from tpucc.labs.race.running import FUNCTIONS, Run, run
from tpucc.labs.timelines import Shown, timelines_svg, timelines_text
from tpucc.target import Target

FULL, NONE = 0.35, 0.95
"""The quotient of cycles and the plain program's, as a geometric mean, that earns all points, and the one that earns none."""


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
    return Rules(machine(8 * draw.randrange(3, 7), draw.choice((2, 2.5, 3)), draw.randrange(2, 5)), (*wastes, SHARED))


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


def _public(term: Term) -> Sequence[Test]:
    """What `check` runs."""
    ruled = rules(term)
    networks = list(race(Random(9), ruled.wastes))
    return (
        Test("one network", 5, partial(right, [first(ruled.wastes)], ruled.target, 0)),
        Test("race", 40, partial(raced, networks, ruled.target, 0, False)),
    )


def _hidden(term: Term, seed: int) -> Sequence[Test]:
    """What only `grade` runs: networks of the same families, and of the sizes at which mistakes hide."""
    ruled, draw = rules(term), Random(f"{seed}/race")
    unseen, networks = list(edges(draw, ruled.target.accumulator_rows)), list(race(draw, ruled.wastes))
    return (
        Test("hidden: edges", 10, partial(right, unseen, ruled.target, seed), True),
        Test("hidden: race", 45, partial(raced, networks, ruled.target, seed, True), True),
    )


def right(networks: Sequence[Network], target: Target, seed: int, submission: Submission) -> Outcome:
    """Programs that must be right, and need not be fast."""
    functions, cycles = defined(submission), []
    for network in networks:
        found = run(network, target, submission, functions)
        if problem := found.wrong(seed):
            return _wrong(found, problem, target, seed, submission, functions)
        cycles.append(f"{found.cycles:,}")
    return Outcome(1, f"all values are right; {', '.join(cycles)} cycles")


def raced(networks: Sequence[Network], target: Target, seed: int, counts: bool, submission: Submission) -> Outcome:
    """How fast the programs are, against the plain ones. One that is wrong loses all points, and has no place on the leaderboard: only
    results that `counts` have measures."""
    functions, runs = defined(submission), list[Run]()
    for network in networks:
        runs.append(run(network, target, submission, functions))
        if problem := runs[-1].wrong(seed):
            return _wrong(runs[-1], problem, target, seed, submission, functions)
    quotient, slowest = mean([found.quotient for found in runs]), max(runs, key=lambda found: found.quotient)
    lines = "".join(f"\n{found.network.name:<10}{found.cycles:>7,} of {found.plain_cycles:>7,}: {found.quotient:.3f}" for found in runs)
    words = f"cycles ÷ the plain program's are {quotient:.3f} in the mean; {FULL:.2f} earns all points, {NONE:.2f} none"
    measures = {"cycles": round(mean([found.cycles for found in runs]), 1), **{found.network.name: found.cycles for found in runs}}
    return Outcome(
        min(1.0, max(0.0, (NONE - quotient) / (NONE - FULL))),
        f"{words}{lines}",
        given=f"the slowest is\n{slowest.network.text}",
        drawing=timelines_text(_shown(slowest)),
        picture=partial(timelines_svg, f"{slowest.network.name}: {slowest.quotient:.3f} of the plain program's cycles", words, _shown(slowest)),
        measures=measures if counts else None,
    )


def defined(submission: Submission) -> list[str]:
    """What the submission defines of what it may. Raises `Failed` where that is nothing."""
    names = submission.defines()
    found = [name for name in FUNCTIONS if name in names]
    if not found:
        raise Failed("result", f"race.py defines none of {', '.join(FUNCTIONS)}")
    return found


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def _shown(found: Run) -> tuple[Shown, ...]:
    """The student's program above the plain one."""
    return Shown("yours", found.exe.runtime.program), Shown("plain", found.plain.runtime.program)


def _wrong(found: Run, problem: str, target: Target, seed: int, submission: Submission, functions: Sequence[str]) -> Outcome:
    """An outcome without points, which says of each function what it does alone."""
    alone = "; ".join(_alone(found.network, name, target, seed, submission) for name in functions) if len(functions) > 1 else ""
    return Outcome(0, f"{found.network.name}: {problem}", f"the network\n{found.network.text}", "the values of the plain program", alone)


def _alone(network: Network, name: str, target: Target, seed: int, submission: Submission) -> str:
    try:
        problem = run(network, target, submission, (name,)).wrong(seed)
    except (Failed, tpucc.Error) as error:
        problem = str(error)
    return f"with {name} alone {'it is wrong' if problem else 'it is right'}"


def _words(term: Term) -> Mapping[str, str]:
    """What the handout says for this term."""
    ruled = rules(term)
    target = ruled.target
    return {
        "mxu": str(MXU),
        "accumulators": str(target.accumulator_rows),
        "fetch": str(target.tile_fetch_cycles),
        "fifo": str(target.weight_fifo_tiles),
        "wastes": "\n".join(_waste_lines(ruled.wastes)),
        "waste_names": str(ruled.wastes),
        "full": f"{FULL:.2f}",
        "none": f"{NONE:.2f}",
    }


def _waste_lines(wastes: Sequence[str]) -> Iterator[str]:
    for name in wastes:
        if name == SHARED:
            yield '- `h = relu(dense(x, 9, "h"))`, and once more `relu(dense(x, 9, "h"))`, with the same weights'
        else:
            yield f"- `{WASTES[name]}`, where no element of `x` is below zero"


LAB = Lab(
    number=9,
    name="race",
    title="A race",
    file="race.py",
    functions=("rewrite",),
    public=_public,
    hidden=_hidden,
    words=_words,
    folder=Path(__file__).parent,
    floor=15,
    ranks="cycles",
    modules=("tpucc", "tpucc.schedule.listing", "tpucc.lowering.products", "tpucc.lowering.tileprogram", "tpucc.ops", "tpucc.ir.printer"),
)
