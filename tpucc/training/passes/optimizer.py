"""The optimizer, written out as operators: from gradients to the states after the step."""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.diagnostics import Origin
from tpucc.ir import Graph, Node, Output, TensorType
from tpucc.ops.gradient import Value
from tpucc.passes.base import Context, graph_pass
from tpucc.training.operators.state import StateAttributes
from tpucc.training.passes.build import Growing
from tpucc.training.passes.names import GRADIENT, NEXT, key_of, states, values_of
from tpucc.training.passes.optimizers import OPTIMIZERS, Update


@graph_pass("optimizer", "writes the optimizer's step as operators", level=0)
def optimizer_step(
    graph: Graph, context: Context, *, of: str = "sgd", parameters: tuple[tuple[str, float], ...] = (("rate", 0.01),)
) -> Graph:
    """Replaces each output `gradient NODE` by `next NODE`, the state after the step, and adds the optimizer's own states.

    A state without a gradient stays as it is. `of` is the optimizer's name, `parameters` are its parameters.
    """
    return _Updates(graph, of, dict(parameters)).collect()


class _Updates(Update):
    """The graph with the updates so far."""

    def __init__(self, graph: Graph, of: str, parameters: Mapping[str, float]) -> None:
        self._graph = graph
        self._of, self._parameters = of, parameters
        self._growing = Growing(graph, "optimizer")
        self._next: list[tuple[str, Value]] = []
        self._powers: dict[str, Value] = {}

    def collect(self) -> Graph:
        gradients, moved = values_of(self._graph, GRADIENT), values_of(self._graph, NEXT)
        outputs = [output for output in self._graph.outputs if not output.name.startswith(GRADIENT)]
        for state in states(self._graph):
            if state.name in gradients:
                outputs += self._updated(state, gradients[state.name])
            elif state.name not in moved:
                outputs.append(Output(NEXT + state.name, state.name))
        return self._growing.build(outputs)

    def _updated(self, state: Node, gradient: str) -> list[Output]:
        growing = self._growing
        growing.begin(state.origin)
        self._state, self._next = state, []
        self.weight, self.gradient = growing.value(state.name), growing.value(gradient)
        made = OPTIMIZERS[self._of](self, **self._parameters)
        moved = [(state.name, made), *self._next]
        names = growing.end([(value, f"next.{name}") for name, value in moved], f"next.{state.name}")
        return [Output(NEXT + name, str(node)) for (name, _), node in zip(moved, names, strict=True)]

    def slot(self, name: str) -> Value:
        state = self._state
        return self._leaf(f"{state.name}.{name}", f"{self._of}.{name}/{key_of(state)}", 0.0, state.type, state.origin)

    def move(self, slot: Value, to: Value) -> Value:
        self._next.append((slot.name, to))
        return to

    def power(self, name: str, base: float) -> Value:
        if name not in self._powers:
            before = self._leaf(f"{self._of}.{name}", f"{self._of}.{name}", 1.0, TensorType("f32", ()), Origin())
            self._powers[name] = self.move(before, before * base)
        return self._powers[name]

    def _leaf(self, name: str, key: str, initial: float, type_: TensorType, origin: Origin) -> Value:
        return self._growing.leaf(name, "state", StateAttributes(key, initial), type_.plain(), origin)
