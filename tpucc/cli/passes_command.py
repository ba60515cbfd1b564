"""`tpucc passes`."""

from __future__ import annotations

import click

from tpucc.cli.columns import described
from tpucc.passes.base import options_of
from tpucc.passes.pipeline import PASSES
from tpucc.passes.training.pipeline import TRAINING_PASSES


@click.command("passes")
def command() -> None:
    """List the passes in their order, with the level that runs them and their options; then those of training."""
    for step in PASSES:
        name = f"{step.name:<22} {'needed' if step.level == 0 else f'-O{step.level}'}"
        click.echo(described(name, 29, step.summary))
        for option in options_of(step):
            click.echo(f"{'':<29} --{step.name}-{option.name.replace('_', '-')} (default {getattr(step, option.name)})")
    click.echo("\nof training, from the loss to the graph of one step:")
    for step in TRAINING_PASSES:
        click.echo(described(step.name, 29, step.summary))
