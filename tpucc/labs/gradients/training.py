"""A small network that is trained with a submission's rules, beside the same with differences.

Everything is float64. The gradients of operators that the submission wasn't asked for are differences, too: nothing here knows a rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random

import numpy as np

from tpucc.ir import Graph, Node, f32
from tpucc.labs.gradients.cases import Case, Rules, differences, value
from tpucc.labs.gradients.rule_graphs import ask, computed, inputs_of
from tpucc.labs.lab import Submission
from tpucc.numerics import Float64
from tpucc.ops.gradient import Value
from tpucc.training.passes.build import Apart

STEPS = 15
NEAR = 1e-5
"""How far a loss may be from the reference's, of the reference's first."""
BATCH, INPUTS, HIDDEN, OUTPUTS = 5, 3, 8, 2
LINES, GAP = 12, 4
"""Lines of characters of a drawing of losses, and characters between two steps."""
Values = Mapping[str, Float64]
Made = Mapping[str, Sequence[Graph]]
"""The gradients of nodes that a submission gave, by the node's name."""


@dataclass(frozen=True, eq=False)
class Network:
    """The graph of a loss, its data and first weights by the names of its inputs, and how far a step goes."""

    graph: Graph
    data: Values
    weights: Values
    rate: float

    @property
    def loss(self) -> str:
        return self.graph.outputs[0].node

    @cached_property
    def reference(self) -> tuple[float, ...]:
        """The losses before each step and after the last one, by differences alone."""
        return self.trained({})

    @cached_property
    def active(self) -> frozenset[str]:
        """The nodes that depend on weights."""
        found = set(self.weights)
        for node in self.graph:
            if not found.isdisjoint(node.operands):
                found.add(node.name)
        return frozenset(found)

    def trained(self, made: Made) -> tuple[float, ...]:
        """The losses with a submission's gradients, until one isn't finite."""
        weights, losses = dict(self.weights), []
        for _ in range(STEPS + 1):
            values = self._forward(weights)
            losses.append(float(values[self.loss]))
            if not math.isfinite(losses[-1]):
                break
            gradients = self._backward(values, made)
            weights = {name: weight - self.rate * gradients[name] for name, weight in weights.items()}
        return tuple(losses)

    def _forward(self, weights: Values) -> dict[str, Float64]:
        values = {**self.data, **weights}
        with np.errstate(all="ignore"):
            for node in self.graph:
                if not node.is_input:
                    values[node.name] = value(node.op, node.attributes, [values[name] for name in node.operands])
        return values

    def _backward(self, values: Values, made: Made) -> Values:
        gradients = {name: np.zeros(values[name].shape) for name in self.active}
        gradients[self.loss] = np.ones(())
        for node in reversed(self.graph.nodes):
            if node.operands:
                for index, name in enumerate(node.operands):
                    if name in self.active:
                        gradients[name] = gradients[name] + _gradient(node, index, values, gradients[node.name], made)
        return gradients


def _gradient(node: Node, index: int, values: Values, dy: Float64, made: Made) -> Float64:
    operands = tuple(values[name] for name in node.operands)
    if node.name in made:
        return computed(made[node.name][index], inputs_of(node.op, operands, values[node.name], dy))
    if node.op == "reshape":  # it moves nothing, and differences would find just that
        return dy.reshape(operands[0].shape)
    with np.errstate(all="ignore"):
        return differences(Case(node.op, node.attributes, operands, dy, "mean"), index)


def gradients_of(network: Network, rules: Rules, submission: Submission) -> Made:
    """The submission's gradients for each node whose operator the term asks for. Raises `Failed`."""

    def gradients(node: Node) -> Sequence[Graph]:
        shapes = [network.graph[name].type.shape for name in node.operands]
        return ask(rules.functions[node.op], node.op, node.attributes, shapes, submission)

    return {node.name: gradients(node) for node in network.graph if node.op in rules.functions}


@cache
def network(rules: Rules, seed: str) -> Network:
    """The network of a term's operators: a product, then the one with kinks, the one of shapes, the smooth one, a product, the loss."""
    draw = np.random.default_rng(Random(f"{seed}/training").randrange(2**32))
    apart, weights = Apart(), dict[str, Float64]()

    def weight(name: str, *shape: int) -> Value:
        weights[name] = draw.standard_normal(shape) / math.sqrt(shape[0])
        return apart.input(name, f32(*shape))

    def pooled(h: Value, op: str) -> Value:
        image = h.reshape(BATCH, 2, h.shape[1] // 2, 1).call(op, size=(2, 1))
        return image.reshape(BATCH, image.type.size // BATCH)

    def shaped(h: Value) -> Value:
        if rules.shaped == "matmul":
            return h @ weight("w2", h.shape[1], 6)
        if rules.shaped == "avg_pool":
            return pooled(h, "avg_pool")
        if rules.shaped == "mean":
            return h.reshape(BATCH, h.shape[1] // 2, 2).call("mean", axis=-1)
        scales = weight("scales", h.shape[1])
        weights["scales"] = 1.0 + np.abs(weights["scales"])
        return h.call(rules.shaped, scales)

    h = apart.input("x", f32(BATCH, INPUTS)) @ weight("w1", INPUTS, HIDDEN)
    attributes = {"leaky_relu": {"alpha": 0.25}, "clip": {"low": -1.0, "high": 1.5}}
    h = pooled(h, "max_pool") if rules.kinked == "max_pool" else h.call(rules.kinked, **attributes[rules.kinked])
    h = shaped(h).call(rules.smooth)
    prediction = h @ weight("w3", h.shape[1], OUTPUTS)
    loss = prediction.call("mean_squared_error", apart.input("target", f32(BATCH, OUTPUTS)))
    x = draw.standard_normal((BATCH, INPUTS))
    target = np.stack([np.sin(x).sum(axis=1), x[:, 0] * x[:, 1]], axis=1) / 2
    return Network(apart.graph(loss), {"x": x, "target": target}, weights, rate=0.5)


def curves_text(found: Sequence[float], reference: Sequence[float]) -> str:
    """The loss before each step, upwards: `o` is the reference, `x` the submission, `*` both. The upper end is the largest loss that is
    finite, and at most twice the reference's: what is beyond is cut off."""
    highest = min(max(loss for loss in (*found, *reference) if math.isfinite(loss)), 2 * max(reference))
    grid = np.full((LINES, GAP * (len(reference) - 1) + 1), " ")
    for losses, mark in ((reference, "o"), (found, "x")):
        for step, loss in enumerate(losses):
            height = min(loss, highest) if math.isfinite(loss) else highest
            place = LINES - 1 - round(height / highest * (LINES - 1)), GAP * step
            grid[place] = mark if grid[place] == " " else "*"
    rows = [
        f"{highest if n == 0 else 0:8.3f} |{''.join(row)}" if n in (0, LINES - 1) else f"{'':8} |{''.join(row)}"
        for n, row in enumerate(grid)
    ]
    under = "".join(f"{step:<{GAP * 5}}" for step in range(0, len(reference), 5)).rstrip()
    return "\n".join(row.rstrip() for row in (*rows, f"{'':10}{under} steps", "o reference, x your rules, * both"))
