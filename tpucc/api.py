"""The Python API: compile a model, look at what was made, run it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import Diagnostic, Source, UsageError, listed, printable
from tpucc.driver import Compilation, Options
from tpucc.driver import compile_source as drive
from tpucc.interop.sources import read_source
from tpucc.ir.dtypes import BY_BITS
from tpucc.isa.disassembler import disassemble
from tpucc.lowering.tiletext import print_tiles
from tpucc.numerics import AnyArray
from tpucc.passes.base import Pass
from tpucc.runtime.runtime import QuantisedOutput, Runtime, load_program
from tpucc.target import Target, load_target, with_overrides
from tpucc.viz import pictures
from tpucc.viz.artifacts import artifacts
from tpucc.viz.notebook import Page, summary_html
from tpucc.viz.tables import memory_table, roofline_table, timeline_table

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class Shown:
    """A stage's value for people: `print` gives its text form, a notebook its picture, and its attributes are the value's."""

    value: Any
    _title: str
    _text: Callable[[], str]
    _svg: Callable[[], str]

    def __repr__(self) -> str:
        return f"<{self._title}>"

    def __str__(self) -> str:
        return self._text()

    def _repr_svg_(self) -> str:
        return self._svg()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.value, name)


class Executable:
    """A compiled model: its stages, its numbers, and a way to run it.

    Made by `compile`, `compile_source` and `load`. A loaded one has its program, not the stages before.
    """

    def __init__(self, runtime: Runtime, compilation: Compilation | None = None) -> None:
        self.runtime = runtime
        self.compilation = compilation

    def __repr__(self) -> str:
        program = self.runtime.program
        return f"<Executable {program.name} for {program.machine}: {len(program.instructions):,} instructions>"

    def _repr_html_(self) -> str:
        return summary_html(self.runtime)

    def run(self, inputs: Mapping[str, npt.ArrayLike] | None = None, /, **named: npt.ArrayLike) -> dict[str, AnyArray]:
        """Runs the model on an array for each input; returns an array for each output. See `Runtime.run`."""
        return self.runtime.run(inputs, **named)

    def run_quantized(self, inputs: Mapping[str, npt.ArrayLike] | None = None, /, **named: npt.ArrayLike) -> dict[str, QuantisedOutput]:
        """The integers of each output that the device computed, with their scale and zero point."""
        return self.runtime.run_quantized(inputs, **named)

    def save(self, path: PathLike) -> None:
        """Writes the self-contained program (`.tpub`)."""
        self.runtime.save(Path(path))

    @property
    def stats(self) -> dict[str, Any]:
        """What `stats.json` holds."""
        return self.runtime.stats

    @property
    def counts(self) -> dict[str, Any]:
        """The cycles counted in four ways: what `profile --timing serial --json` adds to `stats`."""
        return self.runtime.counts

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self.compilation.warnings) if self.compilation else ()

    @property
    def graph(self) -> Shown:
        """The operator graph with its weights, as elaborated."""
        graph = self._stage("graph")
        return self._shown(graph, "operator graph", lambda: str(graph), lambda: pictures.graph_svg(graph))

    @property
    def layers(self) -> Shown:
        """The layer graph: int8 layers between host operators."""
        layers = self._stage("layers")
        return self._shown(layers, "layer graph", lambda: str(layers), lambda: pictures.layers_svg(layers, self.runtime.program.title))

    @property
    def tiles(self) -> Shown:
        """The tile program."""
        tiles = self._stage("tiles")
        return self._shown(tiles, "tile program", lambda: print_tiles(tiles), lambda: pictures.tiles_svg(tiles))

    @property
    def program(self) -> Shown:
        """The machine program."""
        program = self.runtime.program
        return self._shown(program, "machine program", lambda: disassemble(program), lambda: pictures.program_svg(program))

    @property
    def timeline(self) -> Shown:
        """When every instruction starts and ends."""
        runtime = self.runtime
        return self._shown(runtime.timeline, "timeline", lambda: timeline_table(runtime), lambda: pictures.timeline_of(runtime))

    @property
    def memory(self) -> Shown:
        """Who lives in the unified buffer, where, and when."""
        residents = self.runtime.program.residents
        return self._shown(residents, "unified buffer", lambda: memory_table(self.runtime), lambda: pictures.memory_of(self.runtime))

    @property
    def roofline(self) -> Shown:
        """How far each layer is from what the machine could do at its intensity; the value: the model's point, and the layers'."""
        runtime = self.runtime
        return self._shown(pictures.works_of(runtime), "roofline", lambda: roofline_table(runtime), lambda: pictures.roofline_of(runtime))

    def report(self) -> Page:
        """The page with everything in it: a notebook shows it, `save` writes it."""
        if self.compilation is None:
            raise self._without("report")
        program = self.runtime.program
        files = artifacts(self.compilation, self.runtime, Path(program.source).stem, ("report",)).files
        return Page(f"{program.title} on {program.machine}", files["report.html"].decode())

    def _shown(self, value: Any, what: str, text: Callable[[], str], svg: Callable[[], str]) -> Shown:
        return Shown(value, f"the {what} of {printable(self.runtime.program.title)}", text, svg)

    def _stage(self, name: str) -> Any:
        value = getattr(self.compilation, name, None)
        if value is None:
            raise self._without(name)
        return value

    def _without(self, name: str) -> UsageError:
        return UsageError(Diagnostic("E0515", f"a program that was loaded has no {name}; compile the source to see them"))


def compile(  # shadows the built-in on purpose: tpucc.compile is what one types
    path: PathLike,
    *,
    target: str | Target = "tpu_v1",
    overrides: Mapping[str, object] | None = None,
    params: Mapping[str, object] | None = None,
    weights: PathLike | None = None,
    calibration: PathLike | None = None,
    level: int = 2,
    passes: tuple[Pass, ...] = (),
    settings: Mapping[str, Mapping[str, object]] | None = None,
    cores: int = 1,
    activation_bits: int | None = None,
) -> Executable:
    """Compiles the model at `path`.

    `target` is a machine or the name of one, and `overrides` change its numbers as --set does: `{"weight_bandwidth": 136e9}`.
    `params` are the command line's -D; `weights` and `calibration` are archives that win over those the source names; `passes` join or
    replace the built-in ones; `settings` maps a pass's name to its options; `cores` share the batch; `activation_bits` (8 or 16) wins over
    the source's. Raises a subclass of `tpucc.Error`.
    """
    path = Path(path)
    options = _options(_target(target, overrides), params, weights, calibration, level, passes, settings, cores, activation_bits)
    return _executable(drive(read_source(path), path.parent, options))


def compile_source(
    text: str,
    *,
    name: str = "model.tpu",
    folder: PathLike = ".",
    target: str | Target = "tpu_v1",
    overrides: Mapping[str, object] | None = None,
    params: Mapping[str, object] | None = None,
    weights: PathLike | None = None,
    calibration: PathLike | None = None,
    level: int = 2,
    passes: tuple[Pass, ...] = (),
    settings: Mapping[str, Mapping[str, object]] | None = None,
    cores: int = 1,
    activation_bits: int | None = None,
) -> Executable:
    """As `compile`, from source text. `name` stands in messages; `folder` is where the files that the source names lie."""
    options = _options(_target(target, overrides), params, weights, calibration, level, passes, settings, cores, activation_bits)
    return _executable(drive(Source(name, text), Path(folder), options))


def load(path: PathLike) -> Executable:
    """Reads a `.tpub` file. Raises `UsageError` when it can't be read, `ProgramError` when it is malformed or invalid."""
    return Executable(load_program(Path(path)))


def _target(target: str | Target, overrides: Mapping[str, object] | None) -> Target:
    return load_target(target, overrides) if isinstance(target, str) else with_overrides(target, overrides or {})


def _options(
    target: Target,
    params: Mapping[str, object] | None,
    weights: PathLike | None,
    calibration: PathLike | None,
    level: int,
    passes: tuple[Pass, ...],
    settings: Mapping[str, Mapping[str, object]] | None,
    cores: int,
    activation_bits: int | None,
) -> Options:
    if activation_bits is not None and activation_bits not in BY_BITS:
        raise UsageError(Diagnostic("E0518", f"activations have {listed([*map(str, BY_BITS)], 'or')} bits, found {activation_bits}"))
    return Options(
        target=target,
        params={name: _static(value) for name, value in (params or {}).items()},
        weights=None if weights is None else Path(weights),
        calibration=None if calibration is None else Path(calibration),
        level=level,
        extra=passes,
        settings=settings or {},
        cores=cores,
        activation_bits=activation_bits,
    )


def _static(value: object) -> str:
    """A Python value as the language writes it."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return '"' + escaped.replace("{", "{{").replace("}", "}}") + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_static, value))}]"
    return repr(value.item() if isinstance(value, np.generic) else value)


def _executable(compilation: Compilation) -> Executable:
    assert compilation.program is not None
    return Executable(Runtime(compilation.program), compilation)
