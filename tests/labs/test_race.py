"""The race: what fools a careless grader, what the handout says of single steps, and who has a place on the leaderboard."""

from __future__ import annotations

import re
from functools import partial
from random import Random

import pytest

from tests.support.cases import one_of
from tests.support.lab_results import Here
from tests.support.lab_solutions import main_file
from tpucc.ir import literals
from tpucc.ir.parser import parse_graph
from tpucc.labs import find, grading
from tpucc.labs.judging import geometric_mean, outcome_of
from tpucc.labs.lab import AS_WRITTEN, ASKED, Asked, Outcome, Term
from tpucc.labs.passes.comparing import ask
from tpucc.labs.race import CYCLES, raced, rules, running, tried
from tpucc.labs.race.networks import FAMILIES, Network, edges, race
from tpucc.labs.race.running import compiled, run
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.plugins.failures import Failed

LAB = find("race")
RULES = rules(AS_WRITTEN)
REFERENCE = main_file(LAB)
LOWERINGS = ("lower_fc", "lower_conv")
STEPS = {
    "`rewrite`: waste taken out": (("rewrite",), "rewrite = simplified"),
    "`rewrite`: bias and relu into the product": (("rewrite",), "simplified = lambda graph: graph"),
    "`rewrite`: both": (("rewrite",), ""),
    "`lower_fc`: a tile for as many rows as there are accumulators": (("lower_fc",), ""),
    "`lower_conv`: likewise, several lines at a time": (("lower_conv",), ""),
    "`synchronise`: waits only for what is needed": (("synchronise",), ""),
    "`allocate`: every buffer in rows of its own": (("allocate",), "allocate = lambda lives, rows: lives.rows.cumsum() - lives.rows"),
    "both lowerings and waits": ((*LOWERINGS, "synchronise"), ""),
    "both lowerings and `rewrite`": ((*LOWERINGS, "rewrite"), ""),
    "both lowerings, `rewrite` and waits": ((*LOWERINGS, "rewrite", "synchronise"), ""),
}
"""What the handout's table measures: the functions of the reference that are used, and a line that changes one of them."""


@pytest.mark.long
@pytest.mark.parametrize(("name", "step"), one_of(3, STEPS.items()))
def test_the_handouts_table_is_what_is_measured(name: str, step: tuple[tuple[str, ...], str]) -> None:
    functions, change = step
    submission = Here(f"{REFERENCE}\n{change}\n")
    found = [run(network, RULES.target, submission, functions).quotient for network in race(Random(9), RULES.wastes)]
    said = next(line for line in LAB.material("handout.md", AS_WRITTEN).splitlines() if line.startswith(f"| {name} |"))
    assert said == f"| {name} | {' | '.join(f'{value:.2f}' for value in (*found, geometric_mean(found)))} |"


def outcome(text: str, unseen: list[Network] | None) -> Outcome:
    """The race on one network."""
    network = next(race(Random(1), RULES.wastes))
    return raced([network], RULES.target, unseen, Here(text))


@pytest.mark.long
def test_measures_are_of_right_programs_only() -> None:
    """A submission that is wrong on a hidden network has no place on the leaderboard, even where the race's own are right."""
    unseen = list(edges(Random(1), RULES.target.accumulator_rows))
    found = outcome(REFERENCE, unseen).measures
    assert found is not None
    assert found.keys() == {LAB.ranks, "dense"}
    assert outcome(REFERENCE, None).measures is None
    wrong = main_file(LAB, "one_group_for_all_rows")
    assert outcome(wrong, None).share > 0
    assert outcome(wrong, unseen).measures is None


def test_what_fails_is_told_with_the_network_and_each_function() -> None:
    text = "def order(tiles):\n    return []\n\n\ndef rewrite(graph):\n    return graph\n"
    found = outcome_of(partial(outcome, text, None))
    assert found.share == 0
    assert "the stage order returned" in found.message
    assert "model dense" in found.given
    assert found.found == "order alone is wrong; rewrite alone is right"
    with pytest.raises(Failed, match="defines none of"):
        outcome("def lower(layer):\n    return []\n", None)


def test_noise_is_measured_on_many_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one value the plain program is exact by chance, so that a right one seems to have too much noise."""
    network = next(edges(Random(1), RULES.target.accumulator_rows))
    token = ASKED.set(Asked(seed=1))
    assert tried(network, RULES.target, Here(REFERENCE), ("rewrite",))[1] == ""
    monkeypatch.setattr("tpucc.labs.judging.NOISE", 0.1)
    assert "quantisation explains" in tried(network, RULES.target, Here(REFERENCE), ("rewrite",))[1]
    ASKED.reset(token)


def test_the_drawing_has_both_programs() -> None:
    """The picture is the report's, of the student's program."""
    found = outcome("def rewrite(graph):\n    return graph\n", None)
    assert {"yours", "plain program"} <= {line.split(":")[0] for line in found.drawing.splitlines()}
    assert max(map(len, found.drawing.splitlines())) <= 78
    assert found.picture is not None
    assert "dense: 906 cycles" in found.picture()


def test_a_slower_program_is_told_why() -> None:
    """Two rows at a time, and all engines wait for each other."""
    slow = """
def lower_fc(layer):
    lines = []
    for column, block in enumerate(layer.blocks):
        for row in range(0, layer.shape[0], 2):
            rows, group = min(2, layer.shape[0] - row), len([line for line in lines if ".groups" in line])
            lines.append(f".groups [{rows}]")
            for number, level in enumerate(layer.levels):
                end = f"inner={rows} tile={level.tiles[column]}, switch{', accumulate' * (number > 0)}"
                lines.append(f"convolve ub={level.buffer}+{level.start + row} ub_stride=1 acc=g{group} {end}")
            lines.append(f"set_configuration block={block}")
            lines.append(f"activate acc=g{group} ub={layer.results[column]}+{layer.start + row} ub_stride=1 inner={rows}")
    return lines

def synchronise(listing):
    names = ["host", "matrix", "activation"]
    engines = [(each.index, each.engine.name.lower()) for each in listing]
    return [(index, name, [other for other in names if other != name]) for index, name in engines if index and name in names]
"""
    found = outcome(slow, None)
    assert found.share == 0
    why = found.message.splitlines()[-1].removeprefix("dense: ")
    assert re.match(r"Yours takes [\d,]+ cycles more than the plain program ", why)


def test_waste_of_another_term_costs_points() -> None:
    """The rules of the term as written aren't those of this one."""
    ruled = rules(Term("6"))
    submission = Here(REFERENCE)
    found = geometric_mean(
        [
            run(network, ruled.target, submission, (*LOWERINGS, "rewrite", "synchronise")).quotient
            for network in race(Random(0), ruled.wastes)
        ]
    )
    assert found > CYCLES.full


@pytest.mark.parametrize("number", one_of(3, range(6)))
def test_networks_of_every_term_compile(number: int) -> None:
    ruled, draw = rules(Term(str(number))), Random(number)
    networks = list(race(draw, ruled.wastes))
    assert [network.name for network in networks] == list(FAMILIES)
    assert compiled(networks[number % 4], ruled.target).runtime.timeline.makespan > 0


HUGE = """graph huge
x = input() : f32[2]
w = constant(value=f32[16384, 16384] random(1, "k")) : f32[16384, 16384]
return x
"""
WIDE = """graph wide
x = input() : f32[2]
w = ones(shape=(16384, 16384)) : f32[16384, 16384]
return x
"""


REFUSED = [(HUGE, "drawn constants of a text have at most 65,5"), (WIDE, "elements in all; at most 65,5")]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_a_returned_graph_asks_for_no_more_than_a_lab_needs(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short text can say 2^28 random numbers, and the grader would draw them; in the lab of passes, too."""
    monkeypatch.delattr(literals, "random_array")
    given = parse_graph("graph given\nx = input() : f32[2]\nreturn x\n", "given", ATTRIBUTES)
    with pytest.raises(Failed, match=message):
        running.returned_graph(text, given)
    with pytest.raises(Failed, match=message):
        ask("rewrite", given, Here({"rewrite": lambda graph: text}))


@pytest.mark.parametrize(("answer", "what"), [("graph.nodes[0]", "a Node"), ("'here'", "a str, 'here'"), ("None", "None")])
def test_a_rewrite_that_gives_no_graph_is_told_what_it_gave(answer: str, what: str) -> None:
    """A child says of what can't be handed back that it is none."""

    class Child(Here):
        def call(self, function: str, *arguments: object, seconds: float | None = None) -> object:
            try:
                return super().call(function, *arguments, seconds=seconds)
            except Failed as failure:
                raise Failed("result", failure.message) from None

    network = next(race(Random(1), RULES.wastes))
    found = tried(network, RULES.target, Child(f"def rewrite(graph): return {answer}"), ["rewrite"])
    assert found == (None, f"rewrite returned {what}; expected a graph")


KNOWN = """
from dataclasses import replace

import numpy as np

from tpucc.ir.constants import Constant
from tpucc.ops.constant import OP
from tpucc.ops.evaluate import evaluate


def rewrite(graph):
    draw = np.random.default_rng(0)
    known = {node.name: draw.uniform(-1, 1, node.type.shape).astype(np.float32) for node in graph.inputs}
    (output,) = graph.outputs
    node = graph[output.node]
    answer = OP.attributes(Constant(evaluate(graph, known)[node.name]))
    return graph.with_nodes([*graph.inputs, replace(node, op="constant", operands=(), attributes=answer)])
"""


def test_an_answer_that_is_right_on_known_inputs_only_earns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """That it is a constant is said; one that hides it is wrong on inputs that it doesn't know."""
    test = LAB.public(AS_WRITTEN)[0]
    said = grading.run(test, Here(KNOWN)).outcome.message
    assert said == "dense: rewrite made a constant of out: what the model returns depends on its inputs"
    monkeypatch.setattr(running, "_constants", lambda graph: set())
    assert grading.run(test, Here(KNOWN), 0).outcome.passed
    assert not grading.run(test, Here(KNOWN), 77).outcome.passed
