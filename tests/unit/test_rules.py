"""Rules: what a pattern finds, what is put in its place, and what is noted of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.core import core_files
from tests.support.rewrites import CONTEXT, body, check, graph_of
from tpucc.ir import Graph
from tpucc.ir.printer import print_firings
from tpucc.ops import OPS, names
from tpucc.ops.names import add, avg_pool, max_pool, mul, relu, sub, tanh, transpose
from tpucc.ops.opdef import Expression
from tpucc.passes.base import Context, Pass, graph_pass
from tpucc.passes.fuse_bias import fuse_bias
from tpucc.passes.rules import Match, Rule, Rules, called, columns, constant, function, once, rule, rules_pass, total, unpinned, value

ROOT = Path(tpucc.__file__).parent
X = "x = input : f32[3, 4]\ny = input : f32[3, 4]\n"
x, y = value("x"), value("y")


def made(text: str, *rules: Rule) -> Graph:
    result = Rules("trial", *rules).run(graph_of(text), CONTEXT)
    check(result)
    return result


def fired(text: str, *rules: Rule) -> list[str]:
    return [firing.rule for firing in made(text, *rules).firings]


def test_an_expression_takes_the_place_of_the_root() -> None:
    text = f"{X}s = sub(x, y) : f32[3, 4]\nr = tanh(s) : f32[3, 4]\nreturn r"
    result = made(text, rule("turned", tanh(once(sub(x, y))), lambda m: relu(sub(m.y, m.x))))
    assert "r.1 = sub(y, x) : f32[3, 4]\nr = relu(r.1) : f32[3, 4]" in body(result)


def test_a_node_takes_the_place_of_the_root() -> None:
    text = f"{X}r = relu(x) : f32[3, 4]\ns = relu(r) : f32[3, 4]\nt = add(s, y) : f32[3, 4]\nreturn t"
    result = made(text, rule("twice", relu(called("first", relu(x))), lambda m: m.first))
    assert "t = add(r, y)" in body(result)
    assert "s" not in result.by_name


def test_a_node_that_stays_in_the_place_of_others_takes_their_origins() -> None:
    lines = ("r = relu(x) : f32[3, 4] @ 1:5-9", "s = tanh(r) : f32[3, 4] @ 2:5-9", "t = relu(s) : f32[3, 4] @ 3:5-9", "return t")
    once_for_all = rule("once for all", relu(once(tanh(called("first", relu(x))))), lambda m: m.first)
    assert list(map(str, made(X + "\n".join(lines), once_for_all)["r"].origin.spans)) == ["1:5-9", "2:5-9", "3:5-9"]


def test_the_line_of_an_operator_that_was_simplified_away_leads_to_what_is_left_of_it() -> None:
    lines = ("weights random(seed=0)", "model m(x: f32[3, 4]):", "    weight w: f32[4, 5]", "    h = relu(x @ w)")
    more = ("    same = transpose(transpose(h, [1, 0]), [1, 0])", "    return softmax(reshape(same, [3, 5]))")
    exe = tpucc.compile_source("\n".join((*lines, *more)))
    (layer,) = (layer for layer in exe.program.value.layers if layer.kind == "fc")
    assert layer.origin.lines == {3, 4, 5, 6}
    assert layer.origin.line == 4


@each(
    [
        ("add(x, c)", add(x, constant("c")), True),
        ("add(c, x)", add(x, constant("c")), True),
        ("sub(x, c)", sub(x, constant("c")), True),
        ("sub(c, x)", sub(x, constant("c")), False),
        ("add(x, x)", add(x, x), True),
        ("add(x, y)", add(x, x), False),
        ("add(x, c)", add(x, columns("c")), True),
        ("add(x, d)", add(x, columns("d")), False),
        ("mul(x, c)", total(x, constant("c")), False),
        ("sub(x, c)", total(x, constant("c")), True),
        ("tanh(x)", function(), True),
        ("tanh(x)", function(x), True),
        ("add(x, y)", function(), False),
    ]
)
def test_a_pattern_finds(node: str, pattern: Expression, found: bool) -> None:
    constants = "c = constant(value=f32[4]{1, 2, 3, 4}) : f32[4]\nd = constant(value=f32[3, 1]{1, 2, 3}) : f32[3, 1]\n"
    assert (
        fired(f"{X}{constants}r = {node} : f32[3, 4]\nreturn r", rule("it", pattern, lambda m: relu(m.rewriter.nodes["x"])))
        == ["it"] * found
    )


@each([(avg_pool(x), True), (avg_pool(x, size=2), True), (avg_pool(x, size=3), False), (avg_pool(x, padding="valid"), True)])
def test_attributes_that_are_given_must_be_equal_and_others_may_differ(pattern: Expression, found: bool) -> None:
    text = "x = input : f32[1, 4, 4, 2]\np = avg_pool(x, size=2) : f32[1, 2, 2, 2]\nreturn p"
    assert fired(text, rule("it", pattern, lambda m: max_pool(m.x, size=2))) == ["it"] * found


def test_a_rule_that_gives_what_was_there_does_not_fire() -> None:
    graph = graph_of(f"{X}r = relu(x) : f32[3, 4]\nreturn r")
    assert Rules("trial", rule("it", relu(x), lambda m: relu(m.x))).run(graph, CONTEXT) is graph
    assert Rules("trial", rule("it", relu(x), lambda m: None)).run(graph, CONTEXT) is graph


@each([("once", once, 0), ("unpinned", unpinned, 1)])
def test_once_is_a_value_that_nothing_else_reads(name: str, guard: object, count: int) -> None:
    text = f"{X}r = relu(x) : f32[3, 4]\ns = tanh(r) : f32[3, 4]\nt = add(s, r) : f32[3, 4]\nreturn t"
    assert callable(guard), name
    assert len(fired(text, rule("it", tanh(guard(relu(x))), lambda m: relu(m.x)))) == count


def test_rules_are_tried_in_order_until_none_fires() -> None:
    text = f"{X}r = tanh(x) : f32[3, 4]\nreturn r"
    rules = (rule("never", tanh(x), lambda m: relu(m.x), when=lambda m: False), rule("a", tanh(x), lambda m: relu(m.x)))
    assert fired(text, *rules, rule("b", relu(x), lambda m: mul(m.x, m.x))) == ["a", "b"]


def test_a_firing_has_the_nodes_before_and_after() -> None:
    text = (
        f"{X}w = constant(value=f32[4, 2]{{1, 2, 3, 4, 5, 6, 7, 8}}) : f32[4, 2]\nb = constant(value=f32[2]{{1, 2}}) : f32[2]\n"
        "m = matmul(x, w) : f32[3, 2]\nr = sub(m, b) : f32[3, 2]\nreturn r"
    )
    graph = fuse_bias.run(graph_of(text), CONTEXT)
    (firing,) = graph.firings
    assert [node.op for node in firing.matched] == ["matmul", "sub"]
    assert [node.name for node in firing.made] == ["b.1", "r"]
    assert print_firings(graph.firings).splitlines()[:3] == [
        "; rule: a constant added to a product",
        ";   - m = matmul(x, w) : f32[3, 2]",
        ";   - r = sub(m, b) : f32[3, 2]",
    ]
    assert not fuse_bias.run(graph.without_firings(), CONTEXT).firings


def test_what_a_firing_matched_stands_in_the_order_of_the_graph() -> None:
    text = f"{X}r = relu(x) : f32[3, 4]\ns = tanh(r) : f32[3, 4]\nt = add(s, y) : f32[3, 4]\nreturn t"
    (firing,) = made(text, rule("it", add(tanh(relu(x)), y), lambda m: mul(m.x, m.y))).firings
    assert [node.op for node in firing.matched] == ["relu", "tanh", "add"]


def test_the_next_pass_does_not_repeat_what_rules_of_the_one_before_did() -> None:
    source = "weights random(seed=0)\nmodel m(x: f32[8, 4]):\n    weight w: f32[4, 3]\n    weight b: f32[3]\n    return relu(x @ w + b)\n"
    compilation = tpucc.compile_source(source).compilation
    assert compilation is not None
    said = {each.stage: [firing.rule for firing in each.value.firings] for each in compilation.snapshots if isinstance(each.value, Graph)}
    assert said["fuse-bias"] == ["a constant added to a product"]
    assert said["fuse-activation"] == ["a function of a product"]
    assert not any(rules for stage, rules in said.items() if stage not in ("fuse-bias", "fuse-activation"))


def test_a_name_that_the_pattern_lacks_is_an_attribute_error() -> None:
    text = f"{X}r = tanh(x) : f32[3, 4]\nreturn r"
    with pytest.raises(AttributeError, match="no variable z"):
        made(text, rule("it", tanh(x), lambda m: m.z))


def test_a_moved_value_goes_by_the_name_of_its_operand() -> None:
    text = "x = input : f32[3, 4]\nr = tanh(x) : f32[3, 4]\nreturn r"
    result = made(text, rule("it", tanh(x), lambda m: transpose(transpose(m.x, perm=(1, 0)), perm=(1, 0))))
    assert "x.1 = transpose(x, perm=(1, 0)) : f32[4, 3]" in body(result)
    assert result["x.1"].origin.made_by == "trial"


@rules_pass("turn-over", "turns differences over", level=2)
def turn_over() -> Iterator[Rule]:
    """Rewrites `x - y` to `relu(y - x)`."""
    yield rule("turned", sub(x, y), lambda m: relu(sub(m.y, m.x)))


@graph_pass("say-size", "says how large the graph is", level=1)
def say_size(graph: Graph, context: Context) -> Graph:
    """A note of the number of nodes."""
    return graph.noting(f"{len(graph)} nodes")


def test_a_function_of_rules_is_a_pass() -> None:
    assert isinstance(turn_over, Pass)
    assert (turn_over.name, turn_over.summary, turn_over.level) == ("turn-over", "turns differences over", 2)
    assert turn_over.__doc__ == "Rewrites `x - y` to `relu(y - x)`."
    result = turn_over.run(graph_of(f"{X}s = sub(x, y) : f32[3, 4]\nreturn s"), CONTEXT)
    assert "s.1 = sub(y, x) : f32[3, 4]\ns = relu(s.1) : f32[3, 4]" in body(result)
    assert [firing.rule for firing in result.firings] == ["turned"]
    assert result["s.1"].origin.made_by == "turn-over"


def test_a_function_of_a_graph_is_a_pass() -> None:
    assert isinstance(say_size, Pass)
    assert (say_size.name, say_size.level, say_size.__doc__) == ("say-size", 1, "A note of the number of nodes.")
    assert say_size.run(graph_of(f"{X}return x"), CONTEXT).notes == ("2 nodes",)


def test_rules_that_follow_others_in_one_pass_keep_what_those_did() -> None:
    first = Rules("trial", rule("first", relu(x), lambda m: tanh(m.x))).run(graph_of(f"{X}r = relu(x) : f32[3, 4]\nreturn r"), CONTEXT)
    second = Rules("trial", rule("second", tanh(x), lambda m: relu(m.x))).run(first, CONTEXT)
    assert [firing.rule for firing in second.firings] == ["first", "second"]


def test_what_a_rewriter_notes_is_in_the_new_graph() -> None:
    def noted(m: Match) -> Expression:
        m.rewriter.notes.append(f"{m.root.name} is tanh now")
        return tanh(m.x)

    assert made(f"{X}r = relu(x) : f32[3, 4]\nreturn r", rule("it", relu(x), noted)).notes == ("r is tanh now",)


def test_a_constant_takes_the_place_of_the_root() -> None:
    result = made(f"{X}r = relu(x) : f32[3, 4]\nreturn r", rule("it", relu(x), lambda m: m.constant(np.ones((3, 4), np.float32))))
    assert result["r"].op == "constant"
    assert result["r"].origin.made_by == "trial"


def test_operators_are_values_by_their_names() -> None:
    assert names.matmul is OPS["matmul"]
    with pytest.raises(ImportError, match="no_such_operator"):
        from tpucc.ops.names import no_such_operator  # noqa: F401
    with pytest.raises(ImportError):
        from tpucc.ops.names import facts  # noqa: F401 (a file beside the operators that is none)


def test_the_attributes_of_a_node_are_those_of_its_operator() -> None:
    graph = graph_of("x = input : f32[3, 4]\nt = transpose(x, perm=(1, 0)) : f32[4, 3]\nreturn t")
    assert transpose.attributes_of(graph["t"]).perm == (1, 0)
    with pytest.raises(AssertionError):
        avg_pool.attributes_of(graph["t"])


def test_nothing_in_the_core_makes_a_node_of_an_operator_s_name() -> None:
    """By the syntax tree: neither `Node(name, "matmul", …)` nor `replace(node, op="matmul")`."""
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in core_files()
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and _names_an_operator(call)
    ]
    assert not found, "call the operator instead, as in `matmul(x, w)`"


@each(
    [
        ('Node("y", "matmul", ("x",))', True),
        ('Node(name, op="matmul")', True),
        ('replace(node, op="matmul")', True),
        ("replace(node, op=product.op)", False),
        ('replace(node, name="matmul")', False),
        ('replace(node, op="fc")', False),
        ("matmul(x, w)", False),
    ]
)
def test_the_count_sees_nodes_of_names(text: str, found: bool) -> None:
    (call,) = (each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call))
    assert _names_an_operator(call) is found


def _names_an_operator(call: ast.Call) -> bool:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    operators = [keyword.value for keyword in call.keywords if keyword.arg == "op"] + (call.args[1:2] if called == "Node" else [])
    return called in ("Node", "replace") and any(isinstance(each, ast.Constant) and each.value in OPS for each in operators)
