"""Elaboration: from the syntax tree to the operator graph. Everything static is evaluated here; the result is a graph of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tpucc.diagnostics import CompileError, Diagnostic, Label, LimitError, Source, Span, counted
from tpucc.ir import Graph, TensorType
from tpucc.language import ast
from tpucc.language.calls import call
from tpucc.language.directives import Directives, read_directives
from tpucc.language.frame import Frame, Run, is_function
from tpucc.language.params import Params
from tpucc.language.problem import DEFAULT, LimitReached, Limits, Problem
from tpucc.language.statements import returned, run_block, run_body
from tpucc.language.training import Training, elaborate_training
from tpucc.language.types import declare_inputs, tensor_type
from tpucc.language.values import POISON, Items, Poison, Tensor, Value, describe, poisoned
from tpucc.language.warnings import warnings_of


@dataclass(frozen=True, kw_only=True)
class Model(Directives):
    """A source, elaborated: its operator graph, in which weights are still only keys, and the values of its directives."""

    graph: Graph
    training: Training | None = None
    """The graph and the settings of `train`; None for a source without one."""
    warnings: tuple[Diagnostic, ...] = ()


def elaborate(module: ast.Module, source: Source, params: Mapping[str, str] | None = None, limits: Limits = DEFAULT) -> Model:
    """The model of a source. `params` are the texts of `-D`, by name.

    Raises `CompileError` with every independent error in source order, `LimitError` where a limit is crossed, and `UsageError` for a
    `-D` that is wrong.
    """
    run, values = _prepared(module, source, params or {}, limits)
    try:
        return _elaborated(module, run, values)
    except LimitReached as reached:
        raise run.reports.limit_error(reached) from None
    except RecursionError:
        deep = Diagnostic("E0602", "too many operations, blocks and calls inside each other")
        raise LimitError(deep, source) from None


def require_values(module: ast.Module, source: Source, given: Sequence[Mapping[str, str]], limits: Limits = DEFAULT) -> None:
    """Raises `UsageError` for one of several `-D` that is no value, without a look at anything else of the source."""
    for params in given:
        with suppress(CompileError, LimitReached, RecursionError, Problem):  # which compiling tells
            _, values = _prepared(module, source, params, limits)
            values.read_given()


def _prepared(module: ast.Module, source: Source, given: Mapping[str, str], limits: Limits) -> tuple[Run, Params]:
    functions = {item.name.text: item for item in reversed(module.of(ast.Def))}
    declared = {item.name.text: item for item in reversed(module.of(ast.Param))}
    model = next((item.name.text for item in module.of(ast.ModelDef)), "")
    run = Run(source, limits, call, functions, declared, given, model=model)
    values = Params(run)
    run.param = values.value
    return run, values


def _elaborated(module: ast.Module, run: Run, values: Params) -> Model:
    values.read_given()
    _require_unique(module, run)
    values.evaluate_all()
    directives, for_training = read_directives(module, run)
    models, trains = module.of(ast.ModelDef), module.of(ast.TrainDef)
    if not models:
        run.reports.raise_any()
        raise _no_model(run.source)
    _require_one(models, "E0206", "a file has one model", run)
    _require_one(trains, "E0920", "a file has one train", run)
    run.graph.name, run.graph.source = models[0].name.text, run.source.name
    _run_model(models[0], run)
    training = elaborate_training(trains[0], models[0], run, for_training) if trains else None
    _check_uncalled(module, run, models[0] if trains else None)
    run.reports.raise_any()
    graph = run.graph.build()
    return Model(graph=graph, training=training, warnings=warnings_of(module, graph, training, run.repeated), **vars(directives))


def _require_one(definitions: Sequence[ast.ModelDef | ast.TrainDef], code: str, message: str, run: Run) -> None:
    for other in definitions[1:]:
        note = (Label(definitions[0].span, "the first is here"),)
        run.reports.add(Problem(code, f"{message}, and this is another", other.span, notes=note))


def _check_uncalled(module: ast.Module, run: Run, model: ast.ModelDef | None) -> None:
    """Runs each `def` that no call has run, knowing nothing of its arguments and the params: reports what is wrong whatever they are.

    `model` is the one that it may call.
    """
    functions = run.functions if model is None else {**run.functions, model.name.text: model}
    for item in module.of(ast.Def):
        if item.name.text not in run.called:
            unknown: dict[str, Value] = {parameter.name.text: POISON for parameter in item.parameters}
            with run.beside(functions=functions, param=lambda _: POISON) as alone, suppress(LimitReached):
                run_block(Frame(alone, item.body, unknown, functions=(item.name.text,)), item.body)


def _no_model(source: Source) -> CompileError:
    last = max(1, source.text.rstrip().count("\n") + 1)
    end = len(source.line(last)) + 1
    message = "the file has no model" if source.text.strip() else "the file is empty"
    mend = "a file has one, which is what tpucc compiles; it begins with `model name(x: f32[8, 4]):` and ends with a line `return …`"
    return CompileError(Diagnostic("E0205", message, (Label(Span(last, end, last, end + 1)),), (mend,)), source)


def _require_unique(module: ast.Module, run: Run) -> None:
    """Reports params and functions that are defined twice, or named like what the language has. For `train`, the model is a function."""
    seen: dict[str, Span] = {}
    trains = bool(module.of(ast.TrainDef))
    for item in module.items:
        if not (isinstance(item, ast.Param | ast.Def) or (trains and isinstance(item, ast.ModelDef))):
            continue
        name = item.name
        if is_function(name.text):
            mend = f"every call of {name.text} would mean yours; choose another name"
            run.reports.add(Problem("E0207", f"{name.text} is a function of the language", name.span, "taken", mend))
        elif name.text in seen:
            note = (Label(seen[name.text], "first here"),)
            run.reports.add(Problem("E0204", f"{name.text} is defined twice", name.span, notes=note))
        seen.setdefault(name.text, name.span)
        if isinstance(item, ast.Def):
            _require_unique_parameters(item, run)


def _require_unique_parameters(definition: ast.Def, run: Run) -> None:
    names = [parameter.name for parameter in definition.parameters]
    for place, name in enumerate(names):
        if name.text in (before.text for before in names[:place]):
            run.reports.add(Problem("E0204", f"two arguments of {definition.name.text} are named {name.text}", name.span))


def _run_model(model: ast.ModelDef, run: Run) -> None:
    frame = Frame(run, model.body)
    declare_inputs(model.inputs, frame)
    results = None if model.results is None else [(tensor_type(frame, node, bounded_for="a result"), node.span) for node in model.results]
    if run_body(frame, "the model", model.span):
        _declare_outputs(frame, results)


def _declare_outputs(frame: Frame, declared: Sequence[tuple[TensorType | Poison, Span]] | None) -> None:
    """Makes the returned values the outputs of the graph; reports values that aren't tensors, or not of the declared type."""
    if frame.returned is None or poisoned(frame.result):
        return
    values, places = returned(frame)
    is_one = isinstance(frame.result, Items) and places[0] is frame.returned  # a call, or a variable, that is a list
    if declared is not None and len(declared) != len(values):
        note = (Label(declared[0][1], f"{counted(len(declared), 'result')} declared here"),)
        message = f"the model declares {counted(len(declared), 'result')}, but returns {len(values)}"
        frame.report(Problem("E0322", message, places[0].span.to(places[-1].span), notes=note))
        declared = None
    names: set[str] = set()
    for index, (value, place) in enumerate(zip(values, places, strict=True)):
        if not isinstance(value, Tensor):
            mend = "a result is what the model computes: a tensor"
            frame.report(Problem("E0224", f"the model returns {describe(value)}", place.span, "", mend))
            continue
        if declared is not None:
            _require_type(frame, value, place, *declared[index])
        name = _name(None if is_one else place, index, len(values), names)
        names.add(name)
        frame.run.graph.output(name, value.name)


def _name(place: ast.Expression | None, index: int, count: int, taken: set[str]) -> str:
    """The name of an output: its variable's; a `place` of None is a part of a list, which has none of its own."""
    if isinstance(place, ast.Name) and place.text not in taken:
        return place.text
    name = "out" if count == 1 else f"out{index}"
    while name in taken:
        name += "_"
    return name


def _require_type(frame: Frame, value: Tensor, place: ast.Expression, type_: TensorType | Poison, span: Span) -> None:
    if isinstance(type_, Poison) or value.type.plain() == type_.plain():
        return
    shown = place.text if isinstance(place, ast.Name) else "it"
    note = (Label(span, f"declared {type_.brief} here"),)
    message = f"the model declares {type_.brief}, but returns {value.type.brief}"
    frame.report(Problem("E0323", message, place.span, f"{shown} is {value.type.brief}", notes=note))
