"""`tpucc targets [NAME]`."""

from __future__ import annotations

import click
import msgspec

from tpucc.cli.columns import filled
from tpucc.cli.options import option
from tpucc.explain.quantities import number
from tpucc.target import Target, load_target, target_names


@click.command("targets")
@click.argument("name", required=False)
@option("overrides")
def command(name: str | None, overrides: dict[str, str]) -> None:
    """List the machines, or print the numbers of NAME (a built-in one or a FILE.toml) as TOML."""
    if name is None:
        names = target_names()
        for each in names:
            click.echo(f"{each:<{max(map(len, names))}}  {load_target(each).description}")
        return
    target = load_target(name, overrides)
    for field, value in msgspec.structs.asdict(target).items():
        if value or not target.obstacle:
            text = msgspec.json.encode(value).decode() if isinstance(value, str) else repr(value)
            click.echo(f"{field} = {text}")
    _comment(f"peak: {_peak(target)}; a weight tile takes {target.tile_fetch_cycles:,} cycles to fetch")
    if target.obstacle:
        _comment(f"tpucc compile makes no program for it: it {target.obstacle}")


def _comment(text: str) -> None:
    click.echo(filled(text, "# ", "# "))


def _peak(target: Target) -> str:
    text = f"{target.chip_peak_ops / 1e12:.5g} {target.peak_unit}"
    units = target.cores * target.matrix_units
    return text if units == 1 else f"{text} = {units} × {target.mxu}² × 2 × {number(target.clock_hz / 1e6)} MHz"
