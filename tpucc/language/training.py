"""`train`: the loss of a model on a batch of examples, as an operator graph of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tpucc.diagnostics import Span
from tpucc.ir import Graph, Node, f32
from tpucc.ir.dataflow import needed_values
from tpucc.language import ast
from tpucc.language.directives import TrainingDirectives
from tpucc.language.frame import Frame, Run
from tpucc.language.problem import Problem
from tpucc.language.statements import returned, run_body
from tpucc.language.types import declare_inputs, tensor_type
from tpucc.language.values import Poison, Tensor, describe, poisoned
from tpucc.ops.weight import WeightAttributes

LOSS = f32()


@dataclass(frozen=True, kw_only=True)
class Training(TrainingDirectives):
    """The training of a source: its graph, and its settings.

    The inputs of `graph` are those of `train`, the model is inlined in it, and its one output is `loss`, an `f32[]`. `fixed` are the keys
    of the weights that aren't trained.
    """

    graph: Graph
    fixed: frozenset[str]

    @cached_property
    def trained(self) -> frozenset[str]:
        """The keys of the weights that the loss depends on, without the fixed ones."""
        return frozenset(needed_weights(self.graph)) - self.fixed


def needed_weights(graph: Graph) -> Mapping[str, Node]:
    """The weights that the outputs of a graph depend on, by their keys."""
    live = needed_values(graph)
    return {node.attributes.key: node for node in graph if node.name in live and isinstance(node.attributes, WeightAttributes)}


def elaborate_training(train: ast.TrainDef, model: ast.ModelDef, before: Run, directives: TrainingDirectives) -> Training:
    """The graph and the settings of `train`. Errors are added to the reports of `before`, the elaboration of the model.

    Raises `LimitReached`, and `CompileError` for too many errors.
    """
    with before.beside(functions={**before.functions, model.name.text: model}, training=True) as run:
        loss = _run_train(train, Frame(run, train.body))
        fixed = frozenset(key for key, declared in run.weights.items() if declared.fixed)
        training = Training(graph=run.graph.build(), fixed=fixed, **vars(directives))
        if loss is not None and not training.trained:
            mend = "every weight that it depends on is fixed" if fixed else f"call the model: {model.name.text}(…)"
            run.reports.add(Problem("E0924", "the loss depends on no weight that could be trained", loss, "", mend))
    return training


def _run_train(train: ast.TrainDef, frame: Frame) -> Span | None:
    """Makes the loss the output of the graph. The place of its expression; None when something is wrong with it, which is reported."""
    declare_inputs(train.inputs, frame)
    if train.results is not None:
        _require_loss_declared(frame, train.results)
    if not run_body(frame, "train", train.span) or frame.returned is None or poisoned(frame.result):
        return None
    values, places = returned(frame)
    span = places[0].span.to(places[-1].span)
    if len(values) != 1:
        frame.report(_not_one(len(values), span))
        return None
    loss = values[0]
    if not isinstance(loss, Tensor) or loss.type.plain() != LOSS:
        mend = "mean(…) and sum(…) make one value of many" if isinstance(loss, Tensor) else "a loss is what train computes: a tensor"
        frame.report(Problem("E0923", f"the loss must be {LOSS}, and this is {describe(loss)}", span, "", mend))
        return None
    frame.run.graph.output("loss", loss.name)
    return span


def _require_loss_declared(frame: Frame, results: tuple[ast.Type, ...]) -> None:
    span = results[0].span.to(results[-1].span)
    types = [tensor_type(frame, node, bounded_for="a loss") for node in results]
    if len(types) != 1:
        frame.report(_not_one(len(types), span))
    elif not isinstance(types[0], Poison) and types[0] != LOSS:
        frame.report(Problem("E0923", f"the loss must be {LOSS}, and train declares {types[0]}", span, "", f"write -> {LOSS}"))


def _not_one(count: int, span: Span) -> Problem:
    return Problem("E0922", f"train has one result, the loss, and here are {count}", span)
