"""The beginning of a training: from a source to a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tpucc.diagnostics import CompileError, Diagnostic, Error, Source, printable
from tpucc.driver import front_end
from tpucc.interop.sources import IMPORTED
from tpucc.language.elaborate import Model
from tpucc.options import Options
from tpucc.training.numerics import DEFAULT, Numerics
from tpucc.training.session import Session, Settings, parts_for
from tpucc.training.step import Step, make_step


def started(source: Source, folder: Path, stem: str, params: Mapping[str, str], settings: Settings) -> Session:
    """A session for the source's `train`; files that it names are in `folder`.

    Raises `CompileError` E0945 for a source without `train` or `optimizer`, and what `Session` raises; with the source for messages.
    """
    with knowing(source):
        return Session(_model(source, params), source, folder, stem, settings)


def step_of(source: Source, params: Mapping[str, str], cores: int, numerics: Numerics = DEFAULT) -> tuple[Model, Step]:
    """The model of a source and a step of its training, for a batch that cores share. Raises as `started` does."""
    with knowing(source):
        model = _model(source, params)
        assert model.training is not None
        parts_for(cores, 1)
        return model, make_step(model.training, cores, numerics=numerics)


@contextmanager
def knowing(source: Source) -> Iterator[None]:
    """Errors with a place in the source know it."""
    try:
        yield
    except Error as error:
        if error.source is None and any(found.labels for found in error.diagnostics):
            raise type(error)(error.diagnostics, source) from error
        raise


def _model(source: Source, params: Mapping[str, str]) -> Model:
    model = front_end(source, Options(params=params))
    _require_training(model, source)
    return model


def _require_training(model: Model, source: Source) -> None:
    name = source.name
    imported = name.removesuffix(IMPORTED)
    before = "" if imported == name else f"tpucc import {printable(imported)} writes its source; there "
    if model.training is None:
        inputs = [" ".join(source.stretch(node.origin.spans[0]).split()) for node in model.graph.inputs]
        batch = next((found[1] for text in inputs if (found := re.search(r"\w\[ ?([^],]+)", text))), "")
        call = f"{model.graph.name}({', '.join(node.name for node in model.graph.inputs)})"
        output = model.graph[model.graph.outputs[0].node]
        if output.type.dtype == "f32" and output.type.shape[1:] in ((), (1,)):
            sizes = [batch, "1"][: output.type.rank]
            label, loss = f"labels: f32[{', '.join(sizes)}]", f"mean_squared_error({call}, labels)"
        else:
            label, loss = f"labels: i32[{batch}]", f"cross_entropy({call if output.op == 'softmax' else f'softmax({call})'}, labels)"
        mend = f"{before}write `train({', '.join([*inputs, label])}) -> f32[]:`, and in it `return {loss}`"
        raise CompileError(Diagnostic("E0945", f"{printable(name)} has no `train`, which says what the loss is", help=(mend,)))
    if model.training.optimizer is None:
        mend = f"{before}write `optimizer sgd(rate=0.01)`, or adam(rate=0.001)"
        raise CompileError(Diagnostic("E0945", f"{printable(name)} names no optimizer", help=(mend,)))
