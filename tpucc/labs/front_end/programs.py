"""Programs in tpucc's own language, compiled with a submission as one of its operators."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tpucc.diagnostics import CompileError, Error, Source
from tpucc.guest.values import Plain
from tpucc.ir import Graph, TensorType, f32
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph
from tpucc.labs.front_end.comparing import MOST, NONE, array_of, drawn, refused, require_values, rule_text
from tpucc.labs.front_end.rules import Rules, type_of
from tpucc.labs.judging import outcome_of, some_right
from tpucc.labs.lab import Outcome, Submission, Wrong, filled, lost
from tpucc.language.elaborate import elaborate
from tpucc.language.parse import parse
from tpucc.layers.attributes import ATTRIBUTES
from tpucc.ops import also
from tpucc.ops.batch import Case, Division, MixedError
from tpucc.ops.evaluate import evaluate
from tpucc.ops.facts import whole
from tpucc.ops.gradient import Missing
from tpucc.ops.onnx_form import NoForm
from tpucc.ops.opdef import Array, Example, NoFloats, OnHost, OpDef, Operand, RuleError
from tpucc.ops.verify import verify_operators
from tpucc.plugins.failures import Failed

NAME = "lab1.tpu"
DECLARED = tomllib.loads(Path(__file__).with_name("programs.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Program:
    """A source; of one with an error, the error's code, and the words that are underlined."""

    text: str
    code: str = ""
    place: str = ""


def operator(rules: Rules, submission: Submission) -> OpDef[Any]:
    """The operator `lag` whose rule and reference are the submission's."""
    attributes: Any = make_dataclass(
        "LagAttributes", [("by", int, field(default=rules.by)), ("axis", int, field(default=rules.axis))], frozen=True
    )

    def infer(given: Any, types: Any) -> TensorType:
        return _type(submission.call("rule", _plain(given), list(types)))

    def reference(given: Any, arrays: Any) -> Array:
        try:
            type_ = infer(given, [f32(*array.shape) for array in arrays])
        except RuleError as error:
            raise Failed("wrong", f"the rule refuses what it has accepted: {error.message}") from None
        return array_of(submission.call("value", _plain(given), list(arrays)), type_)

    return OpDef(
        name="lag",
        summary=rules.formula,
        documentation="The operator of lab 1.",
        operands=(Operand("a"), Operand("b")),
        attributes=attributes,
        infer=infer,
        reference=reference,
        legalisation=OnHost("it is the lab's"),
        facts=whole(batch=_undivided),
        gradient=Missing("nothing is trained in this lab"),
        floats=NoFloats("it is the lab's"),
        onnx=NoForm("it is the lab's"),
        examples=(Example("along the last axis", attributes(1, -1), (f32(2, 3), f32(2, 3))),),
    )


def _undivided(case: Case) -> Division:
    raise MixedError("lag may work along the batch")


def _plain(attributes: Any) -> Mapping[str, object]:
    return {entry.name: getattr(attributes, entry.name) for entry in fields(attributes)}


def _type(found: Plain) -> TensorType:
    """The type that a submission's rule gives, or its `RuleError`. Raises `Failed` where it gives neither, or more than a test needs."""
    if isinstance(found, dict):
        raise refused(found)
    type_ = type_of(rule_text(found))
    if type_ is None or not type_.shape or type_.rank > 8:
        raise Failed("result", f"the rule gives {rule_text(found)}, expected a type such as f32[2, 3]")
    if not 0 < type_.size <= MOST:
        raise Failed("result", f"the rule gives {type_.brief}")
    return type_


def accepted(rules: Rules, draw: Random, text: str, submission: Submission) -> Outcome:
    """A program without errors: its graph's text reads back as the same graph, and its values are those that are meant."""
    made = operator(rules, submission)
    with also(made), _shown(text):
        graph = elaborated(text)
        again = parse_graph(print_graph(graph), "lab1.graph", {**ATTRIBUTES, "lag": made.attributes})
        verify_operators(again)
        if again != graph:
            raise Wrong("the graph's text reads back as another graph", expected=print_graph(graph), found=print_graph(again))
        _require_values(rules, draw, again)
    return Outcome(1, f"compiled, read back and run: {len(again)} nodes")


@contextmanager
def _shown(text: str, expected: str = "") -> Iterator[None]:
    """Adds the program to what is found out about a submission in the body. Raises `Wrong`."""
    try:
        yield
    except Error as error:
        raise Wrong("a program that is right is refused", given=text, found=error.diagnostics[0].render(Source(NAME, text))) from None
    except Failed as failure:
        found = lost(failure)
        told = {"expected": expected or found.expected, "found": found.found, "drawing": found.drawing}
        raise Wrong(found.message, given=text, **told) from None


def elaborated(text: str) -> Graph:
    source = Source(NAME, text)
    return elaborate(parse(source), source).graph


def _require_values(rules: Rules, draw: Random, graph: Graph) -> None:
    """Raises `Wrong` for a node of another type than is meant, and for other values."""
    inputs = {node.name: drawn(node.type.shape, draw) for node in graph.inputs}
    found = evaluate(graph, inputs, keep=graph.by_name)
    for node in graph:
        if node.op == "lag":
            given, types = _plain(node.attributes), [graph[name].type for name in node.operands]
            if str(node.type) != (expected := rule_text(rules.rule(given, types))):
                raise Wrong(f"the type of {node.name} differs", expected=expected, found=str(node.type))
            a, b = (found[name] for name in node.operands)
            require_values(rules, given, (a, b), found[node.name], "")


def refused_there(rules: Rules, program: Program, submission: Submission) -> Outcome:
    """A program with one error: its code, and the place that is underlined."""
    expected = f"error {program.code} at `{program.place}`"
    with also(operator(rules, submission)), _shown(program.text, expected):
        try:
            elaborated(program.text)
        except CompileError as error:
            found = error.diagnostics[0]
            message = found.render(Source(NAME, program.text))
            if (found.code, excerpt(program.text, error)) == (program.code, program.place):
                return Outcome(1, message)
            raise Wrong("the wrong error, or at the wrong place", found=message) from None
        raise Wrong("a program that is wrong is accepted")


def excerpt(text: str, error: CompileError) -> str:
    """The words of the source that the first diagnostic underlines."""
    span = error.diagnostics[0].span
    return text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1] if span else ""


def source(call: str, x: str = "f32[4, 5]", y: str = "f32[4, 5]") -> str:
    """A program that returns a call of the operator for `x` and `y`."""
    return f"model lab1(x: {x}, y: {y}):\n    h = {call}\n    return h\n"


def programs(kind: str, draw: Random) -> Iterator[Program]:
    """Programs that are `right`, or `wrong`."""
    sizes = {name: draw.randrange(*bounds) for name, bounds in DECLARED[kind]["sizes"].items()}
    for texts in DECLARED[kind]["programs"]:
        call, x, y, *error = (filled(text, {**sizes, "over": sizes["n"] + 1}) for text in texts)
        yield Program(source(call, x, y), *error)


def all_accepted(rules: Rules, seed: str, submission: Submission) -> Outcome:
    """Programs that are right; each earns its share."""
    draw = Random(seed)
    tests = (partial(accepted, rules, draw, program.text, submission) for program in programs("right", draw))
    return some_right(tests, "programs that are right were accepted", NONE)


def all_refused(rules: Rules, seed: str, submission: Submission) -> Outcome:
    """Programs that are wrong, each of which earns its share, once a program that is right is accepted."""
    right = outcome_of(partial(accepted, rules, Random(seed), source("lag(x, y, by=1, axis=-1)"), submission))
    tests = (partial(refused_there, rules, program, submission) for program in programs("wrong", Random(seed)))
    return beside(right, some_right(tests, "programs that are wrong were refused, with the right code at the right place", NONE))


def beside(right: Outcome, wrong: Outcome) -> Outcome:
    """What programs that are wrong earn: nothing unless the one that is right is accepted. What they found is shown first."""
    if right.passed:
        return wrong
    if wrong.passed:
        return replace(right, message=f"the program that is wrong is refused as it must be, but this one is right: {right.message}")
    return replace(wrong, share=0)
