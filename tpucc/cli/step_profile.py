"""`tpucc profile MODEL.tpu --train`: how long a step of training takes, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tpucc.cli.failures import print_json
from tpucc.cli.messages import warnings_of
from tpucc.cli.options import refuse_unused
from tpucc.cli.progress import Progress
from tpucc.interop.sources import read_source
from tpucc.target import Target, load_target
from tpucc.training.numerics import CHOICES, Numerics
from tpucc.training.session import machine_arithmetic
from tpucc.training.start import step_of
from tpucc.training.timing.step_time import StepTime
from tpucc.training.timing.tables import groups_json, scaling_text, step_json, step_text

TARGET = "tpu_v2"
"""The machine where none is named."""
USED = ("model", "train", *CHOICES, "target", "overrides", "params", "cores", "as_json", "quiet")
"""The parameters of `profile` that mean something for a step of training."""


def target_of_step(given: Mapping[str, Any]) -> Target:
    """The machine that the command line names, with its overrides; else `TARGET`. Raises `UsageError` E0946 for one that can't train."""
    said = click.get_current_context().get_parameter_source("target") is not ParameterSource.DEFAULT
    target = load_target(given["target"] if said else TARGET, given["overrides"])
    machine_arithmetic(target)
    return target


def profile_step(model: Path, cores: Sequence[int], given: Mapping[str, Any], as_json: bool, quiet: bool, progress: Progress) -> None:
    """Times a step on each of these numbers of cores, and prints a table of one, or of how it scales."""
    refuse_unused(USED)
    target = target_of_step(given)
    numerics = Numerics(**{name: given[name] for name in CHOICES})
    source = read_source(model)
    times: list[StepTime] = []
    for count in cores:
        progress.stage(f"make the step of {count:,} cores" if len(cores) > 1 else "make the step graph")
        made, step = step_of(source, given["params"], count, numerics)
        for warning in warnings_of(made.warnings, source, step.notes) if not times and not quiet else ():
            progress.say(warning)
        times.append(StepTime(step, target))
    name = made.graph.name
    if as_json:
        head = {"model": name, "target": target.name, "optimizer": str(made.training.optimizer) if made.training else "", **vars(numerics)}
        one = {**step_json(times[0]), "groups": groups_json(times[0])}
        print_json(head | (one if len(times) == 1 else {"scaling": [step_json(time) for time in times]}))
        return
    with progress.aside():
        click.echo(step_text(name, times[0], str(numerics)) if len(times) == 1 else scaling_text(name, times, str(numerics)))
