"""`tpucc doctor`."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import click

from tpucc.cli.columns import filled
from tpucc.labs.grading import isolation
from tpucc.version import VERSION

NEEDED = ("numpy", "lark", "networkx", "graphviz", "click", "rich", "msgspec")
EXTRAS = {
    "pygraphviz": "Graphviz, for `tpucc viz --graphviz`",
    "onnx": "to read ONNX files",
    "onnxruntime": "an outside judge, and faster products",
    "distributed": "sweeps on a Dask cluster",
    "pyarrow": "tables of sweeps in Parquet",
    "pyrtl": "the machine as hardware, for `tpucc rtl`",
}


@click.command("doctor")
def command() -> None:
    """Print what is installed, and what is missing and how to get it."""
    click.echo(f"tpucc {VERSION}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for name in NEEDED:
        click.echo(f"  {name:<14} {_version(name) or f'missing: python -m pip install {name}'}")
    for name, purpose in EXTRAS.items():
        found = _version(name) or f"not installed ({purpose}): python -m pip install {name}"
        click.echo(filled(f"  {name:<14} {found}", "", " " * 17))
    click.echo("isolation for `tpucc lab grade`, the first that works will be used:")
    chosen = False
    filtered = []
    for finding in isolation():
        filtered += [finding.filtered] if finding.filtered is not None else []
        mark = "→" if finding.works and not chosen else " "
        chosen = chosen or finding.works
        reason = finding.jail.summary if finding.works else finding.reason
        click.echo(filled(f"{'yes' if finding.works else 'no':<4} {reason}", f"{mark} {finding.jail.name:<16} ", " " * 24))
    click.echo("the kernel's filter of a submission's system calls (seccomp), in each of them:")
    click.echo(filled(_filter(filtered), "  ", " " * 7))


def _filter(answers: Sequence[bool]) -> str:
    """What the children of the grader say about the filter, and what follows."""
    if not answers:
        return "?    not known: no isolation can be tried here"
    if all(answers):
        return "yes  refuses shared memory, queues, keys and new namespaces"
    return "no   a submission can take memory that no limit counts (memfd_create) and leave keys; the isolation user can't be used"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
