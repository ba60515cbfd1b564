"""Lab 9: a race. Any stage, or a pass, for networks that nobody has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tpucc.explain.comparison.pairs import spent
from tpucc.guest.values import Plain
from tpucc.labs.judging import Scale, geometric_mean, outcome_of
from tpucc.labs.lab import Outcome, Submission, Term, Test, Wrong, declared, filled
from tpucc.labs.race.networks import MXU, SHARED, WASTES, Network, edges, first, race
from tpucc.labs.race.running import FUNCTIONS, REWRITE, Look, Run, run
from tpucc.labs.timelines import Beside
from tpucc.plugins.failures import Failed
from tpucc.target import Target, parse_target

CYCLES = Scale(0.37, 0.95)
"""Of the quotient of cycles and the plain program's, as a geometric mean."""
MACHINE = Path(__file__).with_name("machine.toml").read_text("utf-8")
LONGEST = 10_000
"""Characters of a graph that are told of a rewrite that is wrong."""


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
    words = {"mxu": MXU, "accumulators": accumulators, "tiles": tiles, "weight_bandwidth": weight_bytes * 1e6}
    return parse_target(filled(MACHINE, words), "machine.toml")


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
    """Programs that must be right, and of which one must be faster than the plain one."""
    found = runs(networks, target, submission)
    message = f"all values are right; {', '.join(f'{run.cycles:,}' for run in found)} cycles"
    if all(run.quotient >= 1 for run in found):  # who tries and fails would earn less than who does nothing
        return Outcome(0, f"{message}. No program is faster than the plain one, which earns nothing")
    return Outcome(1, message)


def raced(networks: Sequence[Network], target: Target, edges: Sequence[Network] | None, submission: Submission) -> Outcome:
    """How fast the programs are, against the plain ones. One that is wrong loses all points. Only where `edges` are given, and right too,
    there are measures for the leaderboard."""
    found = runs(networks, target, submission)
    slowest, quotient = max(found, key=lambda run: run.quotient), geometric_mean([run.quotient for run in found])
    lines = "".join(f"\n{run.network.name:<10}{run.cycles:>7,} of {run.plain_cycles:>7,}: {run.quotient:.3f}" for run in found)
    words = f"cycles ÷ the plain program's are {quotient:.3f} in the mean; {CYCLES}{lines}"
    beside = Beside(slowest.exe.runtime, "plain program", spent(slowest.plain.runtime))
    if why := beside.slower():
        words += f"\n{slowest.network.name}: {why}"
    measures = {"cycles": round(geometric_mean([run.cycles for run in found]), 1), **{run.network.name: run.cycles for run in found}}
    return Outcome(
        CYCLES.share(quotient),
        words,
        given=f"the slowest is\n{slowest.network.text}",
        measures=measures if edges and outcome_of(partial(right, edges, target, submission)).passed else None,
        call=None,
        **beside.drawings(),
    )


def runs(networks: Sequence[Network], target: Target, submission: Submission) -> list[Run]:
    """The programs of networks, which are right. Raises `Wrong` for one that isn't, with what is said of each function alone, and the graph
    of a rewrite that is wrong alone."""
    functions, found = defined(submission), list[Run]()
    for network in networks:
        answers = list[Plain]()
        made, problem = tried(network, target, submission, functions, answers.append)
        if made is None or problem:
            verdicts = {name: tried(network, target, submission, (name,))[1] for name in functions} if len(functions) > 1 else {}
            wrong_first = sorted(verdicts.items(), key=lambda verdict: not verdict[1])
            alone = "; ".join(f"{name} alone is {'wrong' if problem else 'right'}" for name, problem in wrong_first)
            graphs = [answer[:LONGEST] for answer in answers if isinstance(answer, str) and verdicts.get(REWRITE, problem)]
            told = "\n".join(filter(None, [alone, *(f"{REWRITE} returned\n{graph}" for graph in graphs)]))
            expected = "the plain program's values, and no findings"
            raise Wrong(f"{network.name}: {problem}", given=f"the network\n{network.text}", expected=expected, found=told, call=None)
        found.append(made)
    return found


def tried(
    network: Network, target: Target, submission: Submission, functions: Sequence[str], look: Look = lambda _: None
) -> tuple[Run | None, str]:
    """The network compiled with these functions, if they make a program of it, and what is wrong with it."""
    try:
        found = run(network, target, submission, functions, look)
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


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    twice = '- `h = relu(dense(x, 9, "h"))`, and once more `relu(dense(x, 9, "h"))`, with the same weights, of any `x`'
    lines = (twice if name == SHARED else f"- `{WASTES[name]}`" for name in rules.wastes)
    return {"mxu": MXU, "fetch3": 3 * rules.target.tile_fetch_cycles, "waste_lines": "\n".join(lines), "cycles": CYCLES}


LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden)
