"""The beginning of a training: from a source to a session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tpucc.diagnostics import CompileError, Diagnostic, Error, Source
from tpucc.driver import front_end
from tpucc.frontend.elaborate import Model
from tpucc.options import Options
from tpucc.training.session import Session, Settings


def started(source: Source, folder: Path, stem: str, params: Mapping[str, str], settings: Settings) -> Session:
    """A session for the source's `train`; files that it names are in `folder`.

    Raises `CompileError` E0945 for a source without `train` or `optimizer`, and what `Session` raises; with the source for messages.
    """
    try:
        model = front_end(source, Options(params=params))
        _require_training(model)
        return Session(model, folder, stem, settings)
    except Error as error:
        if error.source is None and any(found.labels for found in error.diagnostics):
            raise type(error)(error.diagnostics, source) from error
        raise


def _require_training(model: Model) -> None:
    inputs = ", ".join(f"{node.name}: {node.type.brief}" for node in model.graph.inputs)
    names = ", ".join(node.name for node in model.graph.inputs)
    if model.training is None:
        mend = f"train({inputs}, label: i32[…]) -> f32[]:\n    return cross_entropy({model.graph.name}({names}), label)"
        raise CompileError(Diagnostic("E0945", "the source says nothing of training", help=(mend,)))
    if model.training.optimizer is None:
        raise CompileError(Diagnostic("E0945", "the source names no optimizer", help=("optimizer sgd(rate=0.01) names one",)))
