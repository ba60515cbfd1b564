"""`tpucc targets [NAME]`."""

from __future__ import annotations

import click
import msgspec

from tpucc.target import load_target, target_names


@click.command("targets")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the machines, or print the numbers of NAME (a built-in one or a FILE.toml) as TOML."""
    if name is None:
        for known in target_names():
            click.echo(f"{known:<10} {load_target(known).description}")
        return
    target = load_target(name)
    for field, value in msgspec.structs.asdict(target).items():
        click.echo(f"{field} = {_toml(value)}")
    click.echo(f"# peak: {target.peak_ops / 1e12:.2f} TOPS; a weight tile takes {target.tile_fetch_cycles:,} cycles to fetch")


def _toml(value: object) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, str) else repr(value)
