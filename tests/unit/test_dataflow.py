"""Facts that flow over a graph, forward and backward, and the questions that are such facts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.rewrites import ATTRIBUTES
from tpucc.ir import Node
from tpucc.ir.dataflow import Computed, backward, constant_values, forward, leading_to, needed_values, reached_from, stages, true_of
from tpucc.ir.parser import parse_graph

GRAPH = parse_graph(
    """graph g "g.tpu"
x = input : f32[2]
one = ones(shape=(2,)) : f32[2]
two = add(one, one) : f32[2]
a = relu(x) : f32[2]
b = mul(a, a) : f32[2]
c = add(b, two) : f32[2]
d = sub(c, a) : f32[2]
unread = exp(a) : f32[2]
return d as "y"
""",
    "g.graph",
    ATTRIBUTES,
)


def names(node: Node, near: Mapping[str, str]) -> str:
    """The node with its neighbours' facts, each in the order in which the flow gives it."""
    return f"{node.name}({' '.join(near.values())})"


def test_a_forward_fact_has_the_facts_of_the_operands_each_once() -> None:
    facts = forward(GRAPH, names)
    assert list(facts) == [node.name for node in GRAPH]
    assert facts["b"] == "b(a(x()))"
    assert facts["c"] == "c(b(a(x())) two(one()))"


def test_a_backward_fact_has_the_facts_of_the_readers_each_once() -> None:
    facts = backward(GRAPH.nodes, names)
    assert facts["one"] == "one(two(c(d())))"
    assert facts["a"] == "a(unread() d() b(c(d())))"


def test_neighbours_that_a_flow_does_not_visit_say_nothing() -> None:
    nodes = tuple(node for node in GRAPH if node.name in ("a", "c", "d"))
    assert forward(nodes, names) == {"a": "a()", "c": "c()", "d": "d(c() a())"}
    assert backward(nodes, names) == {"d": "d()", "c": "c(d())", "a": "a(d())"}


def test_a_fact_holds_unless_it_is_false_or_empty() -> None:
    assert true_of({"a": True, "b": False, "c": 0, "d": "", "e": "why"}) == {"a", "e"}


@pytest.mark.parametrize(
    ("starts", "stops", "below", "above"),
    [
        ({"b"}, set(), {"b", "c", "d"}, {"b", "a", "x"}),
        ({"b"}, {"c", "a"}, {"b"}, {"b"}),
        ({"b", "two"}, {"b", "one"}, {"b", "two", "c", "d"}, {"b", "two", "a", "x"}),
        ({"a"}, {"c"}, {"a", "b", "d", "unread"}, {"a", "x"}),
    ],
)
def test_what_is_after_or_before_a_node_without_a_stop_between(starts: set[str], stops: set[str], below: set[str], above: set[str]) -> None:
    assert reached_from(GRAPH, starts, stops) == below
    assert leading_to(GRAPH.nodes, starts, stops) == above


def test_nodes_without_inputs_are_constant_and_outputs_need_the_others() -> None:
    assert constant_values(GRAPH) == {"one", "two"}
    assert needed_values(GRAPH) == {node.name for node in GRAPH} - {"unread"}
    computed = Computed(GRAPH)
    assert [node.name for node in computed.nodes] == ["x", "a", "b", "c", "d"]
    assert computed.operands(GRAPH["b"]) == ["a", "a"]
    assert computed.operands(GRAPH["c"]) == ["b"]


def test_each_crossing_from_the_device_to_the_host_begins_a_stage() -> None:
    assert stages(GRAPH, {"a", "c"}) == {"x": 0, "one": 0, "two": 0, "a": 0, "b": 1, "c": 1, "d": 2, "unread": 1}
    assert set(stages(GRAPH, ()).values()) == {0}
