"""Stages that the user brings, from Python files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from tpucc.back_end import STAGES
from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, listed
from tpucc.guest.files import IN_A_PAGE, INSIDE, executed, file_at
from tpucc.options import SECONDS
from tpucc.plugins.code import FileFunction
from tpucc.plugins.failures import Failed
from tpucc.schedule.allocate import TooLarge
from tpucc.stages.products import ProductLayer
from tpucc.stages.stages import BUILT_IN, Stages


def stages_of_files(files: Mapping[str, Path], seconds: float = SECONDS, *, trust: bool = False) -> Stages:
    """Stages from Python files, by the stage's name; each file defines a function of that name.

    The files are executed, in a child or, for those who `trust` them, here. Raises `UsageError` for a stage or a function that is not
    there, `PluginError` when a file fails.
    """
    return Stages(**{stage: _function(stage, path, seconds, trust or IN_A_PAGE) for stage, path in files.items()})


def _function(stage: str, path: Path, seconds: float, here: bool) -> Callable[..., Any]:
    if stage not in STAGES:
        mend = did_you_mean(stage, STAGES) or f"there are {listed(STAGES)}"
        raise UsageError(Diagnostic("E0526", f"no stage is named {stage}", help=(mend,)))
    if here:
        own = {name: value for name, value in vars(executed(path)).items() if callable(value)}
    else:
        file = file_at(path, seconds)
        ask = partial(asked, partial(file.call, f"{INSIDE}:stage", stage))
        own = {name: FileFunction(ask, code.file, code.line) for name, code in file.functions().items()}
    if stage not in own:
        mend = (
            did_you_mean(stage, list(own)) or f"it begins with: def {stage}({', '.join(signature(getattr(BUILT_IN, stage)).parameters)}):"
        )
        raise UsageError(Diagnostic("E0526", f"{path} defines no function {stage}", help=(mend,)))
    function: Callable[..., Any] = own[stage]
    return function


def asked(ask: Callable[..., Any], *arguments: Any, with_lines: bool = True) -> Any:
    """What a stage in a child gives. The built-in lines of a layer, which only this process can make, go `with_lines` along. Raises
    `Failed` and `TooLarge`."""
    given = [_with_lines(each, with_lines) if type(each) is ProductLayer else each for each in arguments]
    try:
        return ask(*given)
    except Failed as failure:
        if failure.kind == "TooLarge":
            raise TooLarge(failure.message) from None
        raise


def _with_lines(layer: ProductLayer, with_lines: bool) -> ProductLayer:
    """The layer whose built-in lowering gives the lines that it has here, or none."""
    return replace(layer, builtin=partial(list, layer.builtin()) if with_lines else list)
