"""The step graph: from a source's `train` to the graph of one step, pass by pass."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.ir import Graph, Node
from tpucc.language.training import Training
from tpucc.passes.base import Context
from tpucc.passes.pipeline import run_pass, verify_stage
from tpucc.target import load_target
from tpucc.training.numerics import DEFAULT, Numerics
from tpucc.training.passes.differentiate import differentiate
from tpucc.training.passes.names import NEXT, key_of, values_of
from tpucc.training.passes.pipeline import training_passes


@dataclass(frozen=True)
class Stage:
    """A graph on the way, and what the pass that made it does."""

    name: str
    summary: str
    graph: Graph
    changed: bool


def bytes_of(node: Node) -> int:
    """The size of a node's value on a machine for floats."""
    return node.type.size * node.type.numpy.itemsize


@dataclass(frozen=True)
class Step:
    """One step of training: `graph` has an output `loss`, and an output `next NODE` for each state NODE.

    The graph is that of one of `parts` equal parts of the batch, which `cores` share. `stages` are the graphs on the way, the elaborated
    one first.
    """

    graph: Graph
    parts: int
    cores: int
    stages: tuple[Stage, ...]
    notes: tuple[str, ...]

    def after(self, name: str) -> Graph:
        """The graph that the first pass of this name leaves."""
        return next(stage.graph for stage in self.stages if stage.name == name)

    @property
    def reduced_bytes(self) -> int:
        """The bytes that several cores would reduce at each step: the loss, the gradients and the moved averages."""
        graph = self.after(differentiate.name)
        return sum(bytes_of(graph[name]) for name in graph.output_nodes)

    @property
    def statistics(self) -> frozenset[str]:
        """The keys of the states that no gradient moves: the moving averages of batch normalisation."""
        graph = self.after(differentiate.name)
        return frozenset(key_of(graph[name]) for name in values_of(graph, NEXT))


def make_step(training: Training, cores: int = 1, microbatches: int = 1, numerics: Numerics = DEFAULT) -> Step:
    """The step of a source's `train`, for a batch that cores share, each of which makes several microbatches of its share.

    Raises `CompileError` E0831 where the parts of the batch can't be computed apart, E0940 for an operator without a gradient, and E0941
    for a batch normalisation whose averages are no weights; `UsageError` E0508 for a batch that isn't divisible.
    """
    context = Context(load_target("tpu_v2"))
    graph = training.graph
    verify_stage(graph)
    stages = [Stage("train", "the loss, as it is written", graph, changed=True)]
    notes: list[str] = []
    assert training.optimizer is not None
    optimizer, bfloat16, one_pass = training.optimizer, numerics.activations == "bf16", numerics.statistics == "one-pass"
    for step in training_passes(training.fixed, cores, microbatches, optimizer.name, optimizer.parameters, bfloat16, one_pass):
        made = run_pass(step, graph, context)
        notes += made.notes
        made = made.without_notes()
        stages.append(Stage(step.name, step.summary, made, changed=made != graph))
        graph = made
    return Step(graph, cores * microbatches, cores, tuple(stages), tuple(notes))
