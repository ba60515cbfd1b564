"""The integers that the device computed for the outputs of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tpucc.diagnostics import Diagnostic, InputError
from tpucc.ir import Node
from tpucc.ir.dataflow import leading_to
from tpucc.numerics import AnyArray
from tpucc.ops import dequantizes, facts_of
from tpucc.ops.facts import Values
from tpucc.runtime.batches import Arrays
from tpucc.runtime.inputs import Given
from tpucc.runtime.runtime import Runtime


@dataclass(frozen=True, eq=False)
class QuantisedOutput:
    """An output as the device computed it: integers, and what they mean (real = scale * (integer - zero_point))."""

    values: AnyArray
    scale: float
    zero_point: int


def run_quantized(runtime: Runtime, inputs: Given) -> dict[str, QuantisedOutput]:
    """As `Runtime.run`, but the integers that the device computed for each output, by the output's name.

    Where the host computes an output from the device's results, as it does a softmax, these results stand in its place, by their own
    names. Raises `InputError` E0435 when there are none: the device computes nothing, or not row by row of the batch.
    """
    nodes, outputs = _results(runtime), {output.name: runtime.host.epilogue[output.node] for output in runtime.host.epilogue.outputs}
    if not nodes:
        raise InputError(Diagnostic("E0435", "the device computes no part of the outputs", help=("run gives what the host computes",)))

    def run_part(part: Arrays) -> dict[str, AnyArray]:
        values = runtime.ports(part)
        return {name: values[node.name].reshape(outputs.get(name, node).type.shape) for name, node in nodes.items()}

    results = runtime.in_batches(run_part, runtime.accepted(inputs))
    found = {name: node.type.quantisation for name, node in nodes.items()}
    return {name: QuantisedOutput(results[name], q.scale, q.zero_point) for name, q in found.items() if q is not None}


def _results(runtime: Runtime) -> dict[str, Node]:
    """The device's results that the outputs are made of, which are inputs of the host's graphs.

    They are by the output's name where it is dequantised or reshaped at most, else by their own.
    """
    epilogue, ports = runtime.host.epilogue, {port.name for port in runtime.program.outputs}
    nodes = [node for graph in (*runtime.host.steps, epilogue) for node in graph]
    # a value that one graph computes is no input of the others here: its node comes last, and is kept
    made = {node.name: node for node in sorted(nodes, key=lambda node: not node.is_input)}

    def is_result(node: Node) -> bool:
        return node.is_input and node.type.quantisation is not None and node.name in ports

    found: dict[str, Node] = {}
    for output in epilogue.outputs:
        node = _through_views(made[output.node], made)
        if dequantizes(node.op):
            node = _through_views(made[node.operands[0]], made)
        if is_result(node):
            found[output.name] = node
        else:
            sources = leading_to(epilogue.nodes, {output.node})
            found |= {node.name: node for node in epilogue.inputs if node.name in sources and is_result(node)}
    return {name: node for name, node in found.items() if name in runtime.outputs or _has_the_batch(runtime, node)}


def _has_the_batch(runtime: Runtime, node: Node) -> bool:
    """Whether rounds and cores divide a value as they divide the outputs."""
    batch, cores = runtime.batch, runtime.program.cores
    return node.type.shape[:1] == (batch // cores,) if batch is not None else cores == 1


def _through_views(node: Node, made: Mapping[str, Node]) -> Node:
    seen: set[str] = set()  # two graphs of a file may each make a value of the other's by its name
    while facts_of(node.op).values is Values.VIEWED and node.name not in seen:
        seen.add(node.name)
        node = made[node.operands[0]]
    return node
