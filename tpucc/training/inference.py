"""A model executed by the training machine: what it computes in training's arithmetic, batch by batch."""

from __future__ import annotations

from tpucc.floating.matrix_unit import Machine
from tpucc.ir import Graph
from tpucc.numerics import AnyArray
from tpucc.ops.constant import ConstantAttributes
from tpucc.runtime.batches import Batches
from tpucc.target import Target
from tpucc.training.device import Device
from tpucc.training.lowering.lower import lower_model
from tpucc.training.plan import Plan

Arrays = dict[str, AnyArray]


class Inference:
    """A model on one core of a machine for floats. `graph` is the model's, `bound` has the values of its weights."""

    def __init__(self, graph: Graph, bound: Graph, target: Target) -> None:
        """Raises what `lower_model` raises."""
        self.graph = graph
        types = {node.name: node.type for node in graph.inputs}
        self.batches = Batches.of(types, [graph[output.node].type for output in graph.outputs])
        self.device = Device(lower_model(graph, target))
        self._plan = Plan(graph, Machine(target.mxu))
        nodes = (bound[name] for name in self.device.lowered.states)
        self._weights = {node.name: node.attributes.value.data for node in nodes if isinstance(node.attributes, ConstantAttributes)}

    def rounds(self, inputs: Arrays) -> int:
        """The batches that inputs of any number of rows are divided into."""
        return sum(1 for _ in self.batches.divided(inputs))

    def run(self, inputs: Arrays) -> Arrays:
        """The outputs by name, with as many rows as the inputs. The `batches` must accept these."""
        return self.batches.run(lambda part: self._named(self.device.run(self._weights, [part])), inputs)

    def reference(self, inputs: Arrays) -> Arrays:
        """The same, computed operator by operator."""
        return self.batches.run(lambda part: self._named(self._plan.run(self._weights, [part])), inputs)

    def _named(self, found: Arrays) -> Arrays:
        return {output.name: found[output.node] for output in self.graph.outputs}
