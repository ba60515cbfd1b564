"""`tpucc.sweep`: a model for every combination of values, from Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from tpucc.arguments import no_choice
from tpucc.explain.sweeps.axes import axis_of_values
from tpucc.explain.sweeps.figures import COSTS, figures_of
from tpucc.explain.sweeps.journal import Journal, journal_of
from tpucc.explain.sweeps.plan import MOST, Plan, require_sources
from tpucc.explain.sweeps.points import Points, run
from tpucc.explain.sweeps.table import require_format, write_table
from tpucc.interop.sources import files_asked, require_kept
from tpucc.options import PathLike
from tpucc.output_files import write_file
from tpucc.see.notebook import Page
from tpucc.see.sweeps.page import sweep_page


class Sweep(Points):
    """A sweep that has ended, made by `sweep`: its rows in the order of its axes, each a dict of all columns of the table."""

    def save(self, path: PathLike) -> None:
        """Writes the table (`.csv`, `.json`, `.parquet`), or the page (`.html`)."""
        file = Path(path)
        require_kept([file], self._reads)
        if file.suffix == ".html":
            write_file(file, sweep_page(self).encode())
        else:
            write_table(self, file)

    def page(self) -> Page:
        """The page: a notebook shows it, `save` writes it."""
        return Page(f"the sweep of {', '.join(self.plan.models)}", sweep_page(self), self._reads)

    @property
    def _reads(self) -> tuple[Path, ...]:
        return (*_files(self.plan), self._journal.path)

    def front(self, cost: str = "ub_peak_bytes") -> list[dict[str, Any]]:
        """The rows than which no other of their model is better with as much of the column `cost` or less.

        They stand model by model, the cheapest first; of rows that are equal in both it is the first. Better is: less time end to end, or
        in a stream with `goal="stream"`; more operations of the model in that time where its work differs, because of `params`.
        """
        if not isinstance(cost, str) or cost not in COSTS:
            raise no_choice("front's cost", list(COSTS), cost)
        return [self[point] for front in figures_of(self).fronts(cost) for point in front]


def sweep(
    model: PathLike | Sequence[PathLike],
    *,
    overrides: Mapping[str | tuple[str, ...], object] | None = None,
    params: Mapping[str | tuple[str, ...], object] | None = None,
    table: PathLike | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    most: int = MOST,
    told: Callable[[int], None] = lambda _: None,
    **asked: Any,
) -> Sweep:
    """Compiles and times a model, or several, for every combination of values: `overrides={"mxu": [128, 256]}, params={"batch": [8, 64]}`.

    The key of several numbers that change together is a tuple, and so is each value. `table` is the file of the table
    (`.csv`, `.json`, `.parquet`); what is done is kept beside it, and a second call goes on from there. `jobs` are processes of this
    machine (default: as many as cores), `scheduler` is the address of a Dask cluster. More than `most` points are refused. `told` gets the
    count of points that are done. The other keywords are those of `compile`; `passes` and `stages` are files, as other processes read them.
    A point that can't be compiled is a row with its error. Raises `UsageError` for axes that are wrong and for the table of another sweep.
    """
    paths = [model] if isinstance(model, str | os.PathLike) else list(model)
    names = [os.fspath(path) for path in paths]
    require_sources(names)
    axes = [axis_of_values("set", key, values) for key, values in (overrides or {}).items()]
    axes += [axis_of_values("param", key, values) for key, values in (params or {}).items()]
    plan = Plan(tuple(names), tuple(axes), asked)
    plan.require(most)
    if table is not None:
        require_format(Path(table))
        require_kept([Path(table), journal_of(Path(table))], _files(plan))
    folder = None if table is not None else mkdtemp()
    journal = Journal(journal_of(Path(table or Path(str(folder), "sweep.csv"))), plan.identity, plan.count)
    found = Sweep(plan, journal)
    finalize(found, _forget, journal, folder)
    run(plan, journal, jobs, scheduler, told)
    if table is not None:
        write_table(found, Path(table))
    return found


def _files(plan: Plan) -> tuple[Path, ...]:
    """The files that a sweep reads."""
    return (*map(Path, plan.models), *files_asked(plan.given))


def _forget(journal: Journal, folder: str | None) -> None:
    """Closes a sweep's journal; one that nobody asked for is removed."""
    journal.close()
    if folder is not None:
        rmtree(folder, ignore_errors=True)
