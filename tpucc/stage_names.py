"""The stages that a compilation runs, by name and in order: parse, elaborate, weights, the passes, lower, schedule, verify."""

from __future__ import annotations

from tpucc.options import Options
from tpucc.passes.base import Pass
from tpucc.passes.pipeline import pipeline, unknown_name

FRONT_STAGES = ("parse", "elaborate", "weights")
BACK_STAGES = ("lower", "schedule", "verify")


def passes_of(options: Options) -> tuple[Pass, ...]:
    """The passes that these options ask for, in order. Raises `UsageError`."""
    return pipeline(options.level, options.passes, options.settings, options.omit, options.include)


def stage_names(options: Options) -> tuple[str, ...]:
    """The names that `--stop-after` and `--print-after` take, in order."""
    return tuple(dict.fromkeys(stage_order(options)))


def stage_order(options: Options) -> tuple[str, ...]:
    """The stages in the order in which they run; a pass that runs twice is there twice."""
    return (*FRONT_STAGES, *(p.name for p in passes_of(options)), *BACK_STAGES)


def require_stage(name: str, options: Options) -> None:
    """Raises `UsageError` when no stage is named so."""
    if name not in stage_names(options):
        raise unknown_name("stage", name, stage_names(options))


def pass_places(options: Options) -> list[str]:
    """The passes as the head of a graph names them: `fuse-bias`; `constant-folding 1` where another of this name comes later."""
    names = [step.name for step in passes_of(options)]
    return [name if name not in names[index + 1 :] else f"{name} {names[: index + 1].count(name)}" for index, name in enumerate(names)]
