"""A model executed by the training machine: what it computes in training's arithmetic, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tpucc.floating.matrix_unit import Machine
from tpucc.ir import Graph
from tpucc.numerics import AnyArray
from tpucc.ops.constant import ConstantAttributes
from tpucc.passes.input_arrays import batches
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
        self.device = Device(lower_model(graph, target))
        self._plan = Plan(graph, Machine(target.mxu))
        nodes = (bound[name] for name in self.device.lowered.states)
        self._weights = {node.name: node.attributes.value.data for node in nodes if isinstance(node.attributes, ConstantAttributes)}

    def rounds(self, inputs: Mapping[str, AnyArray]) -> int:
        """The batches that inputs of any number of rows are divided into."""
        return sum(1 for _ in batches(self.graph.inputs, inputs))

    def run(self, inputs: Mapping[str, AnyArray]) -> Arrays:
        """The outputs by name, with as many rows as the inputs."""
        return self._joined(inputs, [self.device.run(self._weights, [part]) for part in batches(self.graph.inputs, inputs)])

    def reference(self, inputs: Mapping[str, AnyArray]) -> Arrays:
        """The same, computed operator by operator."""
        return self._joined(inputs, [self._plan.run(self._weights, [part]) for part in batches(self.graph.inputs, inputs)])

    def _joined(self, inputs: Mapping[str, AnyArray], found: list[Arrays]) -> Arrays:
        rows = max((len(array) for array in inputs.values() if array.ndim), default=1)
        parts = {output.name: [part[output.node] for part in found] for output in self.graph.outputs}
        return {name: np.concatenate(values)[:rows] if values[0].ndim else values[0] for name, values in parts.items()}
