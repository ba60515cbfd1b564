"""`tpucc passes`."""

from __future__ import annotations

import click

from tpucc.cli.columns import described, filled
from tpucc.passes.base import ASKED, options_of
from tpucc.passes.pipeline import PASSES
from tpucc.passes.training.pipeline import TRAINING_PASSES

LEVELS = {0: "needed", ASKED: "--with"}
"""What stands for the level of a pass that no `-O` adds."""


@click.command("passes")
def command() -> None:
    """List the passes in their order, with the level that runs them and their options; then those of training."""
    for step in PASSES:
        name = f"{step.name:<22} {LEVELS.get(step.level, f'-O{step.level}')}"
        click.echo(described(name, 29, step.summary))
        for option in options_of(step):
            flag = f"--{step.name}-{option.name.replace('_', '-')} (default {getattr(step, option.name)})"
            click.echo(filled(flag, " " * 30, " " * 32))
    click.echo("\nof training, from the loss to the graph of one step:")
    for step in TRAINING_PASSES:
        click.echo(described(step.name, 29, step.summary))
