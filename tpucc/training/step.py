"""The step graph: from a source's `train` to the graph of one step, pass by pass."""

from __future__ import annotations

from dataclasses import dataclass

from tpucc.frontend.training import Training
from tpucc.ir.graph import Graph
from tpucc.passes.base import Context, Pass
from tpucc.passes.common_subexpressions import CommonSubexpressions
from tpucc.passes.dead_code import DeadCode
from tpucc.passes.running import run_pass, verify_stage
from tpucc.passes.training.batch_statistics import BatchStatistics
from tpucc.passes.training.differentiate import Differentiate
from tpucc.passes.training.divide import DivideExamples
from tpucc.passes.training.draw_dropout import DrawDropout
from tpucc.passes.training.fold import FoldExact
from tpucc.passes.training.logits import Logits
from tpucc.passes.training.optimizer import Optimizer
from tpucc.passes.training.reduce import AllReduce
from tpucc.passes.training.states import States
from tpucc.target import Target, load_target


@dataclass(frozen=True)
class Stage:
    """A graph on the way, and what the pass that made it does."""

    name: str
    summary: str
    graph: Graph
    changed: bool


@dataclass(frozen=True)
class Step:
    """One step of training: `graph` has an output `loss`, and an output `next NODE` for each state NODE.

    The graph is that of one of `parts` equal parts of the batch. `stages` are the graphs on the way, the elaborated one first.
    """

    graph: Graph
    parts: int
    stages: tuple[Stage, ...]
    notes: tuple[str, ...]


def make_step(training: Training, parts: int, target: Target | None = None) -> Step:
    """The step of a source's `train`, for a batch in `parts` equal parts.

    Raises `CompileError` E0831 where the parts of the batch can't be computed apart, E0940 for an operator without a gradient, and E0941
    for a batch normalisation whose averages are no weights; `UsageError` E0508 for a batch that isn't divisible.
    """
    context = Context(target or load_target("tpu_v2"))
    graph = training.graph
    verify_stage(graph)
    stages = [Stage("train", "the loss, as it is written", graph, changed=True)]
    notes: list[str] = []
    for step in passes(training, parts):
        made = run_pass(step, graph, context)
        notes += made.notes
        made = made.without_notes()
        stages.append(Stage(step.name, step.summary, made, changed=made != graph))
        graph = made
    return Step(graph, parts, tuple(stages), tuple(notes))


def passes(training: Training, parts: int) -> tuple[Pass, ...]:
    """The passes of training, in their order."""
    assert training.optimizer is not None
    return (
        States(training.fixed),
        FoldExact(),
        DivideExamples(parts),
        BatchStatistics(),
        DrawDropout(),
        Logits(),
        CommonSubexpressions(),
        Differentiate(),
        AllReduce(parts),
        Optimizer(training.optimizer.name, training.optimizer.parameters),
        FoldExact(),
        CommonSubexpressions(),
        DeadCode(),
    )
