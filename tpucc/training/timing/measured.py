"""Steps of training as they were measured on TPU v2 and v3, beside ours: `measured.toml` has each figure with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import fmean

import msgspec

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.explain.paper.figures import Figure, Section
from tpucc.interop.sources import read_source
from tpucc.target import load_target
from tpucc.training.numerics import DEFAULT, Numerics
from tpucc.training.start import step_of
from tpucc.training.timing.step_time import StepTime

AS_MEASURED = Numerics(activations="bf16", statistics="one-pass")
"""What Google's ResNet-50 computes with."""
LONGER = """\
as the program is written, values are float32 and the statistics of batch normalisation are made in two passes: memory moves more than \
twice the bytes. Google's program keeps activations as bfloat16, and XLA makes the statistics in one pass: --activations bf16 and \
--statistics one-pass are the same here."""
SHORTER = """\
our memory always has its full rate, where the profiler shows 86 % of it for the optimizer; and our array rounds its operands itself, \
where XLA casts weights in memory."""


class _Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    system: str
    target: str
    cores: int
    batch: int
    images_per_second: float

    @property
    def name(self) -> str:
        return f"{self.system}, batch {self.batch:,}"


class _ResNet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    program: str
    runs: tuple[_Run, ...]


class _Dense(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    layers: int
    nodes: int
    batch: int
    milliseconds: float


class _ParaDnn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    program: str
    target: str
    cores: int
    runs: tuple[_Dense, ...]


class _Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    resnet50: _ResNet
    paradnn: _ParaDnn


@cache
def _measured() -> _Measured:
    text = (resources.files(__package__) / "measured.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Measured, strict=True)


def compare_training(folder: Path, progress: Callable[[str], None] = lambda _: None) -> Iterator[Section]:
    """The sections, each when it is ready, of the programs in `folder`. `progress` is called with the work in hand.

    Raises `UsageError` E0532 where a program is missing.
    """
    yield _resnet_section(folder, progress)
    yield _paradnn_section(folder, progress)


def _resnet_section(folder: Path, progress: Callable[[str], None]) -> Section:
    found = _measured().resnet50
    figures: list[Figure] = []
    for words, numerics, reason in (("", AS_MEASURED, ""), (", as written", DEFAULT, LONGER)):
        ours = {}
        for run in found.runs:
            progress(f"{found.program}, {run.name}{words}")
            time = _timed(folder / found.program, run.target, run.cores, numerics, batch=run.batch)
            ours[run.name] = time.examples / time.seconds
            figures.append(Figure(f"{run.name}{words}", "", "1/s", run.images_per_second, ours[run.name], reason=reason))
        one, many = (next(run for run in found.runs if run.target == "tpu_v2" and (run.cores > 8) is pod) for pod in (False, True))
        share = 100 * one.cores / many.cores
        rates = many.images_per_second / one.images_per_second, ours[many.name] / ours[one.name]
        row = f"{many.system} of {many.cores // one.cores} {one.system}{words}"
        figures.append(Figure(row, "", "%", share * rates[0], share * rates[1]))
    notes = (
        f"Images a second; and how much of so many times as many a pod reaches. Measured: {found.source}. No constant was fitted to them. "
        "The first rows are with --activations bf16 --statistics one-pass.",
    )
    return Section("resnet50", "Training ResNet-50 (MLPerf v0.5)", tuple(figures), notes, "measured")


def _paradnn_section(folder: Path, progress: Callable[[str], None]) -> Section:
    found = _measured().paradnn
    figures = []
    for run in found.runs:
        name = f"{run.layers} × {run.nodes:,}, batch {run.batch:,}"
        progress(f"{found.program}, {name}")
        time = _timed(folder / found.program, found.target, found.cores, DEFAULT, batch=run.batch, layers=run.layers, nodes=run.nodes)
        figures.append(Figure(name, "", "ms", run.milliseconds, 1e3 * time.seconds))
    errors = [abs(figure.difference or 0.0) for figure in figures]
    notes = (
        f"Milliseconds of the device a step. Measured: {found.source}. A step's wall time is longer: the host's share isn't in these.",
        f"The mean error is {fmean(errors):.1f} %. Ours are shorter: {SHORTER}",
    )
    return Section("paradnn", "Training dense networks (ParaDnn)", tuple(figures), notes, "measured")


def _timed(path: Path, target: str, cores: int, numerics: Numerics, **params: int) -> StepTime:
    if not path.is_file():
        raise UsageError(Diagnostic("E0532", f"{path.parent} has no {path.name}", help=("--programs DIR says where the programs lie",)))
    _, step = step_of(read_source(path), {name: str(value) for name, value in params.items()}, cores, numerics)
    return StepTime(step, load_target(target))
