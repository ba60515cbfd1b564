"""What is verified after a pass: all that it changed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.device_graphs import Device
from tests.support.operator_graphs import Model
from tpucc.diagnostics import PluginError
from tpucc.ir import Constant, Graph, Node, Output, f32
from tpucc.ops import verify
from tpucc.ops.constant import ConstantAttributes
from tpucc.passes.base import Context
from tpucc.passes.pipeline import run_pass, verify_stage
from tpucc.passes.rewriter import Rewriter
from tpucc.plugins.brought import brought
from tpucc.target import load_target

Rewrite = Callable[[Graph], Graph]


@dataclass(frozen=True)
class Rewriting:
    """A pass of one function."""

    name: ClassVar[str] = "mine"
    summary: ClassVar[str] = "does what the test says"
    level: ClassVar[int] = 0

    rewrite: Rewrite

    def run(self, graph: Graph, context: Context) -> Graph:
        return self.rewrite(graph)


def run(graph: Graph, rewrite: Rewrite) -> Graph:
    verify_stage(graph)
    return run_pass(brought(Rewriting(rewrite)), graph, Context(load_target("tpu_v1")))


def operators() -> Graph:
    model = Model()
    h = model.dense(model.input("x", 4, 5), np.ones((5, 3)), np.ones(3), key="h", activation="relu")
    return model.build(model.dense(h, np.ones((3, 2)), key="y", activation="tanh"))


def layers() -> Graph:
    device = Device()
    return device.build(device.fc("y", device.fc("h", device.input("x", 4, 5), 3), 2))


def change(name: str, **fields: object) -> Rewrite:
    """Gives one node other fields; every other node stays the same object."""
    return lambda graph: graph.with_nodes(replace(n, **fields) if n.name == name else n for n in graph)  # type: ignore[arg-type]


def swapped(graph: Graph) -> Graph:
    """A product before its operands."""
    nodes = sorted(graph, key=lambda node: node.name != "h_product")
    return graph.with_nodes(nodes)


def negative(graph: Graph) -> Graph:
    """Another multiplier for a layer, which isn't positive. The layer's own node stays as it is."""
    name = graph["h"].operands[3]
    factors = Constant(np.full(3, -1, np.float32))
    return change(name, attributes=ConstantAttributes(factors))(graph)


@each(
    [
        (operators, change("h_relu", type=f32(4, 9)), "E0783", "h_relu"),
        (operators, change("h_relu", op="relux"), "E0780", "h_relu"),
        (operators, change("h_relu", type=f32(4, -3)), "E0746", "h_relu"),
        (operators, change("x", type=f32(4, 7)), "E0301", "h_product"),
        (operators, change("h_relu", operands=("x",)), "E0783", "h_relu"),
        (operators, swapped, "E0741", "h_product"),
        (operators, lambda graph: graph.with_nodes(node for node in graph if node.name != "h.b"), "E0741", "h_sum"),
        (operators, lambda graph: graph.with_nodes((*graph, graph["h_relu"])), "E0740", "h_relu"),
        (operators, lambda graph: replace(graph, outputs=(Output("y", "nothing"),)), "E0743", "nothing"),
        (layers, negative, "E0825", "h"),
        (layers, change("x", type=f32(4, 5)), "E0822", "x"),
    ]
)
def test_a_fault_is_found_wherever_the_pass_left_it(graph: Callable[[], Graph], rewrite: Rewrite, code: str, blamed: str) -> None:
    """In the node that was changed, in a reader that stayed the same object, in the order, in the outputs."""
    with pytest.raises(PluginError) as caught:
        run(graph(), rewrite)
    head, *others = caught.value.diagnostics
    assert head.code == "E0525"
    assert "the pass mine" in head.message
    assert (code, True) in [(found.code, blamed in found.message) for found in others]


def test_only_what_changed_and_its_readers_is_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, asked = operators(), list[str]()
    monkeypatch.setattr(verify, "_faults", lambda _, node: asked.append(node.name) or ())
    same = run_pass(brought(Rewriting(lambda graph: graph)), graph, Context(load_target("tpu_v1")))
    assert same is graph
    assert asked == []
    result = run_pass(brought(Rewriting(change("h.b", type=f32(3)))), graph, Context(load_target("tpu_v1")))
    assert result == graph
    assert asked == ["h.b", "h_sum"]


def test_a_rewriter_that_changed_nothing_gives_the_graph_itself() -> None:
    graph = operators()

    def rewritten(change: Callable[[Node], Node]) -> Graph:
        rewriter = Rewriter(graph, "mine")
        for node in rewriter:
            rewriter.put(change(node))
        return rewriter.build()

    assert rewritten(lambda node: node) is graph
    moved = rewritten(lambda node: replace(node, origin=node.origin.by("mine")))
    assert moved == graph
    assert moved["h_sum"].origin.made_by == "mine"


def test_a_node_may_be_fused_with_its_namesake() -> None:
    """It takes the place of the one of its name, and has the origins of both."""
    graph = operators()

    def again(rewriter: Rewriter, node: Node) -> bool:
        if node.op != "relu":
            return False
        rewriter.put(node, node)
        return True

    assert Rewriter(graph, "mine").rewrite(again).by_name.keys() == graph.by_name.keys()
