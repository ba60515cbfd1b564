"""Lab 14: what is right by another program, the handout's example, and what a student's kernel is told."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest

from tests.support.cases import each, one_of
from tests.support.lab_results import all_tests, results, submitted
from tests.support.lab_solutions import files_of, reference
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.isa.assembler import assemble
from tpucc.isa.verify import check
from tpucc.labs import find
from tpucc.labs.grading import run
from tpucc.labs.kernel import rules
from tpucc.labs.lab import AS_WRITTEN, Term
from tpucc.numerics import Float32, Float64
from tpucc.sim.timing import time_program

LAB = find("kernel")
TERMS = [AS_WRITTEN, Term("fall"), Term("2027 autumn")]
WHOLE = {name: LAB.filled(text, AS_WRITTEN) for name, text in files_of(LAB, reference(LAB)).items()}


def told(changed: Mapping[str, str], name: str) -> str:
    """What a public test says of the reference with other files."""
    (test,) = [test for test in LAB.public(AS_WRITTEN) if test.name == name]
    return run(test, submitted(LAB, WHOLE | changed, AS_WRITTEN)).outcome.message


def product(a: Float32, b: Float32) -> Float64:
    """By float64, in which these sums of 128 products are exact."""
    left, right = (round_to_bfloat16(values).astype(np.float64) for values in (a, b))
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for first in range(0, a.shape[1], 128):
        total += (left[:, first : first + 128] @ right[first : first + 128]).astype(np.float32)
    return total.astype(np.float64)


@pytest.mark.parametrize("term", one_of(2, TERMS), ids=str)
def test_what_is_right_is_what_float64_says(term: Term) -> None:
    for kernel in rules(term).kernels:
        given = kernel.drawn(7)
        if kernel.name == "forward":
            y = product(given["x"], given["w"]).astype(np.float32) + given["b"]
            wanted = {"y": y * (y > 0)}
        else:
            dz = given["dy"] * (given["y"] > 0)
            wanted = {"dx": product(dz, given["w"].T), "dw": product(given["x"].T, dz)}
        made = kernel.makes(given)
        assert {name: (made[name] == values).all() for name, values in wanted.items()} == dict.fromkeys(kernel.outputs, True)


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_sizes_are_ragged_and_of_several_passes_and_blocks(term: Term) -> None:
    forward, gradient = rules(term).kernels
    assert all(kernel.rows % 8 for kernel in (forward, gradient))
    assert [-(-size // 128) for size in (forward.depth, forward.columns)] == [3, 2]
    assert [-(-size // 128) for size in (gradient.rows, gradient.depth, gradient.columns)] == [2, 2, 2]


def test_the_example_of_the_handout_takes_the_cycles_that_it_says() -> None:
    handout = LAB.material("handout.md", AS_WRITTEN)
    (listing,) = re.findall(r"```\n(\.expression.*?)```", handout, re.DOTALL)
    memory = "".join(
        f".memory {name} {kind} rows={rows}\n" for name, kind, rows in (("x", "input", 12), ("w", "input", 40), ("z", "output", 12))
    )
    program = assemble(f"{listing}.target tpu_v2\n{memory}", "example.asm")
    check(program)
    time = time_program(program)
    load, push, multiply, vector, store = [cycles for cycles in (time.end - time.start).tolist() if cycles]
    words = f"{load} cycles for the load, {push} for the push, {multiply} for the product, 256 until its sums are there, {vector} for"
    assert words in handout
    assert f"{store} for the store: {time.makespan:,}." in handout


@each(
    [
        ("another directive", ".target tiny", "line 1: .target is part of the lab, not of a solution; you may write .expression and"),
        ("an instruction that isn't there", "    activate acc=0", "forward.asm:1:5: error E0710: no instruction is named activate"),
        ("a rule", "    load hbm=w.0 y=0 rows=9000", "forward.asm:1:5: error V0303"),
        ("nothing", "", "forward.asm:1:1: error V1001"),
        (
            "a name that isn't there",
            "    load hbm=w.0 y=z.0 rows=9",
            "forward.asm:1:20: error E0713: nothing in the vector memory is named z.0",
        ),
    ]
)
def test_what_is_no_kernel_is_said_with_its_line(title: str, text: str, words: str) -> None:
    assert told({"forward.asm": text}, "forward: values").startswith(words), title


def test_a_missing_wait_costs_no_values() -> None:
    text = WHOLE["forward.asm"].replace("    synchronize engine=vector wait=matrix\n", "")
    changed = {"forward.asm": text}
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "a=y.0 b=b.0" in line)
    assert told(changed, "forward: values") == "2 of 2 column blocks are right"
    assert f"forward.asm:{line}:5: error V0801" in told(changed, "forward: accepted")


def test_values_that_are_wrong_are_counted() -> None:
    changed = {"forward.asm": WHOLE["forward.asm"].replace("b=b.1", "b=b.0")}
    assert told(changed, "forward: values").startswith("1 of 2 column blocks are right; y.1: ")
    assert told(changed, "forward: accepted").startswith("y.1: ")


def test_the_picture_has_the_units_and_the_cycles_that_earn_all_points() -> None:
    (fast,) = [found for found in results(LAB, WHOLE, AS_WRITTEN) if found.test.name == "forward: cycles"]
    names = [line.split()[0] for line in fast.outcome.drawing.splitlines()]
    assert names == ["yours:", "memory", "weights", "matrix", "vector", "all", "total", "cycles"]


@pytest.mark.long
@pytest.mark.parametrize("file", one_of(1, sorted(WHOLE)))
def test_a_line_more_earns_no_less(file: str) -> None:
    """The reference line by line: a program of its first lines, with the last one, is worth as much as a shorter one."""
    lines, score = WHOLE[file].splitlines(keepends=True), 0.0
    tests = [test for test in all_tests(LAB, AS_WRITTEN) if test.name.startswith(file.removesuffix(".asm"))]
    for count in range(12, len(lines), 3):
        submission = submitted(LAB, {file: "".join([*lines[:count], lines[-1]])}, AS_WRITTEN)
        found = sum(run(test, submission).score for test in tests)
        assert found >= score
        score = found


@each([", .memory z scratch rows=4", " ,, .cores 8", ",.layer q forward weights=1x1"])
def test_directives_behind_commas_are_the_labs_too(line: str) -> None:
    """The assembler skips commas, so that such a line is a directive."""
    said = told({"forward.asm": f"{line}\n{WHOLE['forward.asm']}"}, "forward: values")
    assert "is part of the lab, not of a solution" in said
