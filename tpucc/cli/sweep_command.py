"""`tpucc sweep MODEL.tpu… --set FIELD=A,B,… -D NAME=A,B,…`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from tpucc.cli.failures import print_json
from tpucc.cli.messages import say, tell
from tpucc.cli.options import FILE, compile_options, json_option, settings_of
from tpucc.cli.places import keep_inputs
from tpucc.cli.progress import Progress
from tpucc.diagnostics import counted, printable
from tpucc.explain.sweeps.axes import KEYWORDS, Kind, axis_of_text
from tpucc.explain.sweeps.journal import Journal, journal_of
from tpucc.explain.sweeps.plan import MOST, Plan, require_sources
from tpucc.explain.sweeps.points import Points, run
from tpucc.explain.sweeps.summary import summary, summary_json
from tpucc.explain.sweeps.table import require_format, write_table
from tpucc.options import OPTIONS
from tpucc.output_files import write_file
from tpucc.see.sweeps.page import LARGEST, sweep_page
from tpucc.user_options import flag_of

NO_AXIS = "a sweep goes through values: --set mxu=128,256 of the target, or -D batch=8,64 of the source; tpucc profile has one point"


def _axes(kind: Kind) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], tuple[tuple[Kind, str, str], ...]]:
    def read(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[Kind, str, str], ...]:
        found = []
        for text in values:
            name, equals, several = text.partition("=")
            if not equals or not name.strip():
                raise click.BadParameter(
                    f"{text!r} is not NAME=A,B,…, as in {flag_of(KEYWORDS[kind])} {'mxu=128,256' if kind == 'set' else 'batch=8,64'}"
                )
            found.append((kind, name.strip(), several))
        return tuple(found)

    return read


set_option = click.option(
    "--set", "overrides", multiple=True, callback=_axes("set"), metavar="FIELD=A,B,…", help="Values of a number of the target."
)
param_option = click.option(
    "-D", "params", multiple=True, callback=_axes("param"), metavar="NAME=A,B,…", help="Values of a param of the source."
)


@click.command("sweep")
@click.argument("models", nargs=-1, type=FILE, metavar="MODEL.tpu…")
@partial(compile_options, overrides=set_option, params=param_option)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="TABLE.csv|.json|.parquet",
    help="The table, a row a point (default: build/MODEL/sweep.csv). What is done is kept beside it, and a second run goes on from there.",
)
@click.option("--page", type=FILE, metavar="PAGE.html", help="The page (default: beside the table, by its name).")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="How many processes compute (default: as many as cores).")
@click.option("--scheduler", metavar="ADDRESS", help="Compute on the Dask cluster of this scheduler, as in tcp://HOST:8786.")
@click.option("--most", type=click.IntRange(1), default=MOST, show_default=True, metavar="N", help="The most points that are computed.")
@json_option
@click.option("--quiet", is_flag=True, help="No summary, no progress.")
def command(
    models: tuple[Path, ...],
    overrides: tuple[tuple[Kind, str, str], ...],
    params: tuple[tuple[Kind, str, str], ...],
    output: Path | None,
    page: Path | None,
    jobs: int | None,
    scheduler: str | None,
    most: int,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Compile and time models for every combination of values, and write a table and a page.

    --set mxu=128,256 and -D batch=8,64 are axes; --set mxu:accumulator_rows=128:8192,256:4096 changes two numbers together. A point that
    can't be compiled is a row with its error. Nothing is executed.
    """
    if scheduler is not None and jobs is not None:
        raise click.UsageError("--jobs is of this machine; a cluster has the workers that it has")
    require_sources([str(model) for model in models])
    plan = Plan(tuple(map(str, models)), tuple(axis_of_text(*asked) for asked in (*overrides, *params)), _given(given))
    plan.require(most)
    if len(models) == 1 and not plan.axes:
        raise click.UsageError(NO_AXIS)
    table = output or Path("build", *([models[0].stem] if len(models) == 1 else []), "sweep.csv")
    require_format(table)
    page = page or table.with_suffix(".html")
    points = journal_of(table, "" if output else plan.digest)
    keep_inputs(table, page, points)
    with Progress(not quiet and not as_json) as progress, Journal(points, plan.identity, plan.count) as journal:
        before = plan.count - len(journal.missing)
        found = _run(plan, journal, jobs, scheduler, progress)
        progress.stage("write the table and the page")
        write_table(found, table)
        if plan.count <= LARGEST:
            write_file(page, sweep_page(found).encode())
        progress.close()
        _print(found, (table, page), before, as_json, quiet)
        return _ended(found)


def _given(given: dict[str, Any]) -> dict[str, Any]:
    """The keywords of compiling that the command line gives, in plain values."""
    named = {name: given[name] for name in OPTIONS if given.get(name)} | {"level": given["level"]}
    settings = settings_of(given)
    return named | ({"settings": settings} if settings else {})


def _run(plan: Plan, journal: Journal, jobs: int | None, scheduler: str | None, progress: Progress) -> Points:
    """Computes what is missing; after Ctrl-C it says what is done."""
    try:
        points = counted(plan.count, "point")
        return run(plan, journal, jobs, scheduler, lambda done: progress.stage(f"{done:,} of {points}"), progress.note)
    except KeyboardInterrupt:
        progress.close()
        done = plan.count - len(journal.missing)
        if done:
            say(f"note: {done:,} of {counted(plan.count, 'point')} are done; the same command goes on from there")
        raise


def _ended(found: Points) -> int:
    """The exit status: 1 where no point can be compiled, and then the error of the first one is said."""
    if any(not row["error"] for row in found):
        return 0
    say(f"error {found[0]['error']}: no point can be compiled; the first: {printable(found[0]['reason'])}")
    return 1


def _earlier(before: int, count: int) -> str:
    if before < count:
        return f"{before:,} of the {counted(count, 'point')} {'is' if before == 1 else 'are'}"
    return f"all {counted(count, 'point')} are" if count > 1 else "the point is"


def _print(found: Points, written: tuple[Path, Path], before: int, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(summary_json(found))
    elif not quiet:
        click.echo(summary(found))
        kept = f"{_earlier(before, len(found))} of an earlier run. " if before else ""
        page = f"{printable(str(written[1]))}: open it in a browser" if len(found) <= LARGEST else f"no page, which has {LARGEST:,} at most"
        tell(f"\n{kept}{printable(str(written[0]))}; {page}")
