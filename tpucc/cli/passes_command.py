"""`tpucc passes [NAME]`."""

from __future__ import annotations

from inspect import cleandoc

import click

from tpucc.cli.columns import described, filled, prose
from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, printable
from tpucc.passes.base import Pass, options_of
from tpucc.passes.pipeline import PASSES
from tpucc.training.passes.pipeline import TRAINING_PASSES

LEGEND = "needed: at every level; -O1, -O2: from this level on (the default is -O2), or where --with NAME asks for it"


@click.command("passes")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the passes in their order, with the level that runs them and their options; then those of training. Or print what NAME does."""
    if name is not None:
        _show(name)
        return
    click.echo(f"{filled(LEGEND)}\n")
    for step in PASSES:
        _list(step)
    click.echo("\nof training, from the loss to the graph of one step:")
    for each in TRAINING_PASSES:
        click.echo(described(each.name, 29, each.summary))


def _list(step: Pass) -> None:
    """Its level, its summary and its options."""
    name = f"{step.name:<22} {f'-O{step.level}' if step.level else 'needed'}"
    click.echo(described(name, 29, step.summary))
    for option, default in options_of(step).items():
        flag = f"--{step.name}-{option.replace('_', '-')} (default {default})"
        click.echo(filled(flag, " " * 30, " " * 32))


def _show(name: str) -> None:
    """One pass, with its docstring. Raises `UsageError` E0509 for a name of none."""
    found = next((step for step in PASSES if step.name == name), None)
    training = next((step for step in TRAINING_PASSES if step.name == name), None)
    if found is not None:
        _list(found)
        click.echo(f"\n{filled(LEGEND)}")
    elif training is not None:
        click.echo(described(training.name, 29, training.summary))
    else:
        near = did_you_mean(name, [step.name for step in (*PASSES, *TRAINING_PASSES)])
        raise UsageError(Diagnostic("E0509", f"no pass is named {printable(name)}", help=(near,)))
    told = cleandoc((found or training).__doc__ or "")
    if told:
        click.echo(f"\n{prose(told).rstrip()}")
