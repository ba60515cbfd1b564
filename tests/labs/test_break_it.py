"""Lab 8: the lab's rules are the verifier's, its wrong detectors are found out, and the verifier is not in a child's copy."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType

import numpy as np
import pytest

import tpucc
from tests.support.lab_results import SEED, results
from tests.support.lab_solutions import files_of, reference
from tpucc.isa.assembler import assemble
from tpucc.isa.program import Program
from tpucc.isa.verify import definitions, fifo, hazards, verify
from tpucc.labs import find
from tpucc.labs.break_it import rule_of
from tpucc.labs.break_it.faulty import DETECTORS
from tpucc.labs.break_it.mutants import MODEL, compiled, mutants, short
from tpucc.labs.break_it.rules import RULES, Rule, line, plain
from tpucc.labs.lab import Term
from tpucc.labs.strip import stripped
from tpucc.machines.v1 import Flag, Opcode

rules = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


@cache
def network() -> Program:
    """A compiled program for the small machine, without its memory map: edits would break that too."""
    found: Program = tpucc.compile_source(MODEL, target="tiny").program.value
    return replace(found, residents=())


def edited(seed: int) -> Program:
    """The network's program with a few instructions taken out, exchanged or changed."""
    draw, program = Random(seed), network()
    code, layers = program.instructions.copy(), program.layer_of
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(len(code) - 2)
        match draw.randrange(4):
            case 0:
                code, layers = np.delete(code, at), np.delete(layers, at)
            case 1:
                code[[at, at + 1]] = code[[at + 1, at]]
            case 2:
                product = draw.choice(np.flatnonzero(code["opcode"] == Opcode.MATRIX_MULTIPLY).tolist())
                code["flags"][product] ^= draw.choice((Flag.SWITCH, Flag.ACCUMULATE))
            case _ if code["inner"][at] > 1:
                code["inner"][at] -= 1
    return replace(program, instructions=code, layer_of=layers)


@pytest.mark.long
@rules
def test_the_rules_are_those_of_the_verifier(rule: Rule) -> None:
    """On a program with random edits: the first instruction at fault is the verifier's."""
    at_fault = 0
    for program in map(edited, range(60)):
        found = [violation.instruction for violation in verify(program) if violation.code in rule.codes]
        assert min(rule.faults(plain(program)), default=None) == min(found, default=None)
        at_fault += bool(found)
    assert at_fault > 3


@rules
def test_programs_have_the_faults_that_are_asked_for(rule: Rule) -> None:
    for draw in (Random(1), Random(2)):
        cases = [*mutants(rule, draw, [compiled(3, 7, 5)], 6, 5), *short(rule, draw, 7, 8)]
        assert [sum(bool(case.faults) is broken for case in cases) for broken in (True, False)] == [13, 13]
        assert all(rule.faults(case.program) == case.faults for case in cases)


@rules
def test_every_wrong_detector_is_wrong_somewhere(rule: Rule) -> None:
    cases = [*mutants(rule, Random(3), [compiled(3, 7, 5)], 15, 15), *short(rule, Random(3), 150, 150)]
    for detector in DETECTORS[rule.name]:
        assert any(detector.find(case.program, rule) != set(case.faults) for case in cases), detector.bug


def test_every_rule_is_some_terms_and_has_a_reference() -> None:
    lab, terms = find("break_it"), {rule_of(term).name: term for term in map(Term, "0123456789")}
    assert rule_of(Term()).name == "unwritten"
    assert {"unwritten", *terms} == set(RULES) - ({"race"} - set(terms))
    found = results(lab, files_of(lab, reference(lab)), terms["lost"])
    assert [result.test.name for result in found if not result.outcome.passed] == []


def test_what_is_wrong_is_shown() -> None:
    lab = find("break_it")
    (found,) = results(lab, lab.files(Term()), Term(), "one change")
    told = found.outcome
    assert "0 of 12 bugs caught" in told.message
    assert "which nothing has written" in told.expected
    assert told.found == "[]"
    assert any(row.startswith(">") for row in told.drawing.splitlines())
    assert max(map(len, told.drawing.splitlines())) <= 78


def test_lines_of_instructions_are_short() -> None:
    """And those of whole sums are not cut."""
    for number, each in enumerate(compiled(5, 9, 9)["instructions"]):
        assert len(line(number, each)) <= 78
        if each["switch"]:
            assert line(number, each).endswith(", switches")
            assert len(line(number, each)) < 75


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (definitions, '"V0401", "reads {row}, which'),
        (definitions, "was never activated"),
        (fifo, "no {asker} has asked for one"),
        (hazards, "timelines.wait("),
        (hazards, "what.format(row=memory.row)"),
    ],
)
def test_the_verifier_is_not_in_a_childs_copy(module: ModuleType, said: str) -> None:
    assert module.__file__ is not None
    text = Path(module.__file__).read_text("utf-8")
    assert said in text
    assert said not in stripped(text)


def test_the_handouts_example_breaks_what_it_says() -> None:
    (code,) = re.findall(r"```\n(.*?)```", find("break_it").material("handout.md", Term()), re.DOTALL)
    program = plain(assemble(code, "handout.asm"))
    assert {name: list(rule.faults(program)) for name, rule in RULES.items()} == {"unwritten": [3], "lost": [4], "fifo": [], "race": [6]}


def test_hidden_programs_are_the_seeds() -> None:
    rule = RULES["race"]
    assert short(rule, Random(SEED), 5, 5) == short(rule, Random(SEED), 5, 5) != short(rule, Random(SEED + 1), 5, 5)


def test_a_tile_without_room_is_told_by_how_many_wait() -> None:
    """Not by a number, which would read as a tile's name."""
    asks = {"tile": 4, "switch": False}
    assert RULES["fifo"].faults({"instructions": [asks, asks, asks], "fifo": 2}) == {
        2: "it asks for a tile while 2 wait, and the FIFO holds 2"
    }
