"""Steps of training as they were measured on TPU v2 and v3, beside ours: `measured.toml` has each figure with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any

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


@dataclass(frozen=True)
class ResNetRun:
    """Images a second: measured, ours as measured, and ours of the program as it is written."""

    system: str
    cores: int
    batch: int
    measured: float
    images_per_second: float
    default_images_per_second: float

    @property
    def rates(self) -> tuple[float, float, float]:
        return self.measured, self.images_per_second, self.default_images_per_second


@dataclass(frozen=True)
class DenseRun:
    """Seconds of the device a step: measured, and ours."""

    layers: int
    nodes: int
    batch: int
    measured: float
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """All runs. `scaling`: how much of 64 times the images a second of eight cores a pod of 512 has, for each of a run's rates."""

    resnet50: tuple[ResNetRun, ...]
    paradnn: tuple[DenseRun, ...]

    @property
    def scaling(self) -> tuple[float, float, float]:
        one, _, many = self.resnet50
        share = one.cores / many.cores
        measured, ours, default = (share * last / first for first, last in zip(one.rates, many.rates, strict=True))
        return measured, ours, default

    def json(self) -> dict[str, Any]:
        """`resnet50` by machine, `scaling` and the rows of `paradnn`."""
        machines = {run.system: asdict(run) for run in self.resnet50}
        scaling = dict(zip(("measured", "ours", "default"), self.scaling, strict=True))
        return {"resnet50": machines, "scaling": scaling, "paradnn": [asdict(run) for run in self.paradnn]}

    def sections(self) -> tuple[Section, Section]:
        """The same as tables."""
        return _resnet_section(self), _paradnn_section(self)


def compare_training(folder: Path, progress: Callable[[str], None] = lambda _: None) -> Comparison:
    """The measured runs beside ours, of the programs in `folder`. `progress` is called with the work in hand.

    Raises `UsageError` E0532 where a program is missing.
    """
    known = _measured()

    def rate(run: _Run, numerics: Numerics) -> float:
        progress(f"{known.resnet50.program}, {run.system}")
        time = _timed(folder / known.resnet50.program, run.target, run.cores, numerics, batch=run.batch)
        return time.examples / time.seconds

    def seconds(run: _Dense) -> float:
        progress(f"{known.paradnn.program}, {run.layers} × {run.nodes:,}")
        path, dense = folder / known.paradnn.program, known.paradnn
        return _timed(path, dense.target, dense.cores, DEFAULT, batch=run.batch, layers=run.layers, nodes=run.nodes).seconds

    return Comparison(
        tuple(
            ResNetRun(run.system, run.cores, run.batch, run.images_per_second, rate(run, AS_MEASURED), rate(run, DEFAULT))
            for run in known.resnet50.runs
        ),
        tuple(DenseRun(run.layers, run.nodes, run.batch, run.milliseconds / 1e3, seconds(run)) for run in known.paradnn.runs),
    )


def _resnet_section(found: Comparison) -> Section:
    measured, ours, default = (100 * share for share in found.scaling)
    figures = [Figure(f"{run.system}, batch {run.batch:,}", "", "1/s", run.measured, run.images_per_second) for run in found.resnet50]
    figures.append(Figure("v2-512 of 64 v2-8", "", "%", measured, ours))
    figures += [
        Figure(f"{run.system}, as written", "", "1/s", run.measured, run.default_images_per_second, reason=LONGER) for run in found.resnet50
    ]
    figures.append(Figure("v2-512 of 64 v2-8, as written", "", "%", measured, default))
    notes = (
        f"Images a second; and how much of 64 times as many a pod has. Measured: {_measured().resnet50.source}. No constant was fitted to "
        "them. The first rows are with --activations bf16 --statistics one-pass.",
    )
    return Section("resnet50", "Training ResNet-50 (MLPerf v0.5)", tuple(figures), notes, "measured")


def _paradnn_section(found: Comparison) -> Section:
    figures = [
        Figure(f"{run.layers} × {run.nodes:,}, batch {run.batch:,}", "", "ms", 1e3 * run.measured, 1e3 * run.seconds)
        for run in found.paradnn
    ]
    errors = [abs(figure.difference or 0.0) for figure in figures]
    notes = (
        f"Milliseconds of the device a step. Measured: {_measured().paradnn.source}. A step's wall time is longer by the host's share.",
        f"The mean error is {fmean(errors):.1f} %. Ours are shorter: {SHORTER}",
    )
    return Section("paradnn", "Training dense networks (ParaDnn)", tuple(figures), notes, "measured")


def _timed(path: Path, target: str, cores: int, numerics: Numerics, **params: int) -> StepTime:
    if not path.is_file():
        raise UsageError(Diagnostic("E0532", f"{path.parent} has no {path.name}", help=("--programs DIR says where the programs lie",)))
    _, step = step_of(read_source(path), {name: str(value) for name, value in params.items()}, cores, numerics)
    return StepTime(step, load_target(target))
