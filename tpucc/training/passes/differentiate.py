"""Differentiation: from the graph of a loss to the same graph with the loss's gradients.

Reverse mode (Griewank and Walther, Evaluating Derivatives, chapter 3; Rumelhart, Hinton and Williams 1986 call it back-propagation): from
the loss backwards, each operator's rule makes the gradients of its operands from that of its result. What is made are ordinary nodes at the
end of the same graph, each with the place of the forward node that it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tpucc.diagnostics import CompileError, Diagnostic, listed
from tpucc.ir import Constant, Graph, Node, Output
from tpucc.ir.dataflow import leading_to, reached_from
from tpucc.ops import OPS
from tpucc.ops.gradient import Backward, Gradients, Missing, Rule, Stops, Value
from tpucc.passes.base import Context, graph_pass
from tpucc.training.passes.build import Growing
from tpucc.training.passes.names import GRADIENT, NEXT, loss_of, states, values_of


@graph_pass("differentiate", "adds the gradient of the loss with respect to each state", level=0)
def differentiate(graph: Graph, context: Context) -> Graph:
    """Adds an output `gradient NODE` for each state NODE that no output `next NODE` moves already.

    A value that several nodes use has several gradients, which are added in the order of the uses. That order is part of the result, for
    float addition isn't associative. A state on which the loss doesn't depend gets no output: its gradient is zero.

    Raises `CompileError` E0940 for each operator without a gradient that lies between a state and the loss, and where gradients that
    are 0 everywhere leave no state to train; a note says which states these leave as they are, if they leave others.
    """
    return _Backward(graph, "differentiate").run()


def made_for(graph: Graph) -> Mapping[str, tuple[str, ...]]:
    """For each node of the graph of a loss the nodes that the pass makes on its behalf: the sum of its gradients, then what its rule
    makes."""
    walk = _Backward(graph, "differentiate")
    walk.run()
    return walk.made


class _Backward:
    """The walk from the loss to the states. `made` is what came of each node."""

    def __init__(self, graph: Graph, by: str) -> None:
        self._graph = graph
        self._growing = Growing(graph, by)
        self._loss = loss_of(graph)
        moved = values_of(graph, NEXT)
        self._wanted = [node.name for node in states(graph) if node.name not in moved]
        self._active = self._between()
        self._contributions: dict[str, dict[tuple[int, int], str]] = {name: {} for name in self._active}
        self._gradients: dict[str, str] = {}
        self.made: dict[str, tuple[str, ...]] = {}

    def run(self) -> Graph:
        errors = [error for node in self._graph if (error := self._obstacle(node)) is not None]
        if errors:
            raise CompileError(errors)
        for position, node in reversed(list(enumerate(self._graph))):
            before = len(self._growing.nodes)
            if node.name in self._active and self._found(node) and node.operands:
                self._step(position, node)
            self.made[node.name] = tuple(self._growing.nodes)[before:]
        outputs = [Output(GRADIENT + name, self._gradients[name]) for name in self._wanted if name in self._gradients]
        flat = list(self._flat())
        if flat and not outputs:
            mend = "a loss that can be trained changes a little when a weight does: compute it from the values before this operator"
            found = ((node, f"the loss depends on {weights} through {node.op}: {why}") for node, weights, why in flat)
            raise CompileError([Diagnostic("E0940", message, node.origin.trail(), (mend,)) for node, message in found])
        notes = (f"line {node.origin.spans[0].line}: training doesn't change {weights}: {why}" for node, weights, why in flat)
        return self._growing.build((*self._graph.outputs, *outputs)).noting(*notes)

    def _flat(self) -> Iterator[tuple[Node, str, str]]:
        """Each operator behind which states get no gradient, though the loss depends on them; these states, and why."""
        left = [name for name in self._wanted if name in self._active and name not in self._gradients]
        for node in self._graph:
            operands = node.operands if left and node.name in self._gradients else ()
            for operand in (name for name in operands if name in self._active and name not in self._gradients):
                behind = leading_to(self._graph.nodes, {operand})
                if weights := [name for name in left if name in behind]:
                    left = [name for name in left if name not in weights]
                    why = f"the gradient of {node.op} is 0, for a small change of {operand} doesn't change its result"
                    yield node, listed(weights), why

    def _between(self) -> frozenset[str]:
        """The nodes that depend on a state and on which the loss depends."""
        return reached_from(self._graph, self._wanted) & leading_to(self._graph.nodes, {self._loss})

    def _obstacle(self, node: Node) -> Diagnostic | None:
        rule = OPS[node.op].gradient
        if node.name not in self._active or isinstance(rule, Rule):
            return None
        behind = leading_to(self._graph.nodes, {node.name})
        weights = ", ".join(name for name in self._wanted if name in behind)
        verb = "has no gradient" if isinstance(rule, Stops) else "has no gradient yet"
        message = f"the loss depends on {weights} through {node.op}, which {verb}: {rule.why}"
        mend = f"compute the loss without this operator, or declare {weights} `fixed`"
        return Diagnostic("E0940", message, node.origin.trail(), (mend,))

    def _found(self, node: Node) -> bool:
        """Adds up the gradient of a node's value; says whether there is any."""
        if node.name == self._loss:
            self._gradients[node.name] = self._growing.constant(Constant(np.ones(node.type.shape, np.float32))).name
            return True
        found = [name for _, name in sorted(self._contributions[node.name].items())]
        if not found:
            return False
        self._gradients[node.name] = self._sum(node, found)
        return True

    def _sum(self, node: Node, names: Sequence[str]) -> str:
        total = names[0]
        for name in names[1:]:
            self._growing.begin(node.origin)
            added = self._growing.value(total) + self._growing.value(name)
            (made,) = self._growing.end([(added, f"d.{node.name}")], node.name)
            assert made is not None
            total = made
        return total

    def _step(self, position: int, node: Node) -> None:
        """Asks the node's rule for the gradients of its operands."""
        rule = OPS[node.op].gradient
        assert not isinstance(rule, Stops | Missing)
        growing = self._growing
        growing.begin(node.origin)
        operands = tuple(map(growing.value, node.operands))
        wanted = tuple(name in self._active for name in node.operands)
        given = Backward(node.attributes, operands, growing.value(node.name), growing.value(self._gradients[node.name]), wanted)
        found = [value if asked else None for value, asked in zip(_checked(node, operands, rule.function(given)), wanted, strict=True)]
        names = growing.end([(value, f"d.{name}") for value, name in zip(found, node.operands, strict=True)], f"d.{node.name}")
        for index, (operand, name) in enumerate(zip(node.operands, names, strict=True)):
            if name is not None:
                self._contributions[operand][position, index] = name


def _checked(node: Node, operands: Sequence[Value], found: Gradients) -> Gradients:
    """The gradients of a rule: one an operand, each of the operand's shape."""
    shapes = [None if value is None else value.shape for value in found]
    expected = [operand.shape for operand in operands]
    if len(shapes) != len(expected) or any(shape not in (None, wanted) for shape, wanted in zip(shapes, expected, strict=True)):
        raise TypeError(f"the gradients of {node.op} have the shapes {shapes}, and its operands {expected}")
    return found
