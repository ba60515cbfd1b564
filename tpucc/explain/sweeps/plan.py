"""The plan of a sweep: its models, axes and options. A point is a number from 0 on; the last axis changes fastest."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.explain.sweeps.axes import Axis, require_apart, wrong
from tpucc.files import MODELS, read_file
from tpucc.interop.sources import files_of, items_of, read_source
from tpucc.language.ast import Param
from tpucc.language.elaborate import require_values
from tpucc.language.params import unknown_param
from tpucc.language.parse import parse
from tpucc.options import Options
from tpucc.stage_names import passes_of
from tpucc.target import require_compilable, with_overrides
from tpucc.user_options import command_words, read_options
from tpucc.version import VERSION

MOST = 10_000
"""Points of a sweep, unless more are asked for."""
TIMES = ("host_step_seconds", "host_elements_per_second", "host_latency_seconds", "host_bandwidth", "weight_bandwidth", "clock_hz")
"""Numbers that most often change only the time, those first that do so most often: points that differ in them are computed one after the
other, so that they find each other's programs."""


@dataclass(frozen=True)
class Plan:
    """`given` are the other keywords of compiling; its `passes` and `stages` are paths of files, so that other processes can read them."""

    models: tuple[str, ...]
    axes: tuple[Axis, ...]
    given: Mapping[str, Any]

    def __reduce__(self) -> tuple[type[Plan], tuple[object, ...]]:
        """For other processes, which read the files again."""
        return Plan, (self.models, self.axes, self.given)

    @property
    def sizes(self) -> tuple[int, ...]:
        return (len(self.models), *(len(axis.values) for axis in self.axes))

    @property
    def count(self) -> int:
        return math.prod(self.sizes)

    def require(self, most: int) -> None:
        """Raises `UsageError` E0560 for an axis that is there twice, a model that is, or more than `most` points; E0510 for a param that no
        model has; and what is wrong with the options of all points."""
        require_apart(self.axes)
        if len(set(self.models)) < len(self.models):
            raise wrong("a model is given twice")
        if self.count > most:
            sizes = " × ".join(f"{size:,}" for size in self.sizes)
            text = f"the sweep has {self.count:,} points ({sizes}), and at most {most:,} are computed"
            raise wrong(text, f"--most {self.count} allows them")
        require_compilable(self.base.target)
        passes_of(self.base)
        self._require_params()

    def _require_params(self) -> None:
        """Raises `UsageError` E0510 for a param that no model has, as no point could be compiled, and E0519 for a text that is no value."""
        own = {model: {item.name.text: None for item in items_of(Path(model)) if isinstance(item, Param)} for model in self.models}
        declared = {name: None for names in own.values() for name in names}
        for axis in self.axes if all(Path(model).suffix == ".tpu" for model in self.models) else ():
            for name in axis.names if axis.kind == "param" else ():
                if name not in declared:
                    raise unknown_param(name, declared)
        given = [pair for axis in self.axes if axis.kind == "param" for place in range(len(axis.values)) for pair in axis.pairs(place)]
        for model, names in own.items():
            if asked := [{name: text} for name, text in given if name in names]:
                source = read_source(Path(model))
                require_values(parse(source), source, asked)

    def places(self, point: int) -> tuple[int, ...]:
        """The place of the model among the models, and of each axis's value among its values."""
        found = []
        for size in reversed(self.sizes):
            point, place = divmod(point, size)
            found.append(place)
        return tuple(reversed(found))

    def pairs(self, point: int) -> Iterator[tuple[Axis, str, str]]:
        """Each name of each axis with its value at a point."""
        for axis, place in zip(self.axes, self.places(point)[1:], strict=True):
            yield from ((axis, name, value) for name, value in axis.pairs(place))

    def model(self, point: int) -> str:
        return self.models[self.places(point)[0]]

    def order(self, points: Sequence[int]) -> list[int]:
        """These points in the order in which they are computed: neighbours share most. First the model and the params, at last `TIMES`."""

        def rank(place: int) -> tuple[bool, int]:
            axis = self.axes[place]
            last = [len(TIMES) - TIMES.index(name) if name in TIMES else 0 for name in axis.names]
            return axis.kind == "set", min(last)

        ways = sorted(range(len(self.axes)), key=rank)

        def key(point: int) -> tuple[int, ...]:
            places = self.places(point)
            return (places[0], *(places[1 + way] for way in ways))

        return sorted(points, key=key)

    @cached_property
    def base(self) -> Options:
        """The options that all points share. Runs the files of passes and stages."""
        return read_options(self.given)

    def options(self, point: int) -> Options:
        """The options of a point. Raises `UsageError` E0531 for numbers that no machine has together."""
        pairs = list(self.pairs(point))
        target = with_overrides(self.base.target, {name: value for axis, name, value in pairs if axis.kind == "set"})
        return replace(self.base, target=target, params={name: value for axis, name, value in pairs if axis.kind == "param"})

    def command(self, point: int) -> str:
        """The command that computes a point alone."""
        words = ["tpucc", "profile", self.model(point), *self.words]
        for axis, name, value in self.pairs(point):
            words += [axis.flag, f"{name}={value}"]
        return shlex.join(words)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The options that all points share, as the command line writes them."""
        return tuple(command_words(self.given))

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What a table is of: tpucc's version, the models and the files that they need by their digests, options and axes."""
        return {
            "tpucc": VERSION,
            "models": {model: _digest(*files_of(Path(model))) for model in self.models},
            "options": [*self.words, _digest(*self._files(), values=repr(self.given.get("target")))],
            "axes": {f"{axis.flag} {axis.name}": [":".join(row) for row in axis.values] for axis in self.axes},
        }

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits of the identity."""
        return sha256(repr(self.identity).encode()).hexdigest()[:8]

    def _files(self) -> Iterator[Path]:
        """Files that the options name."""
        target = self.given.get("target")
        named = [self.given.get("weights"), self.given.get("calibration"), *(self.given.get("passes") or ())]
        named += [*(self.given.get("stages") or {}).values(), target if str(target).endswith(".toml") else None]
        yield from (Path(name) for name in named if name is not None)


def _digest(*files: Path, values: str = "") -> str:
    found = sha256(values.encode())
    for path in files:
        found.update(sha256(read_file(path, suffixes=MODELS if path.suffix in ("", *MODELS) else ())).digest())
    return found.hexdigest()[:32]


def require_sources(models: Sequence[str]) -> None:
    """Raises `UsageError` E0560 for a model that is no source, and when there is none."""
    if not models:
        raise wrong("a sweep needs at least one model")
    for model in models:
        if Path(model).suffix in (".tpub", ".graph", ".tile", ".asm"):
            raise UsageError(Diagnostic("E0560", f"{model} is compiled already, for one machine; a sweep takes the source (.tpu)"))
