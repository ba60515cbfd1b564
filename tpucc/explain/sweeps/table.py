"""The table of a sweep, in the order of its axes whatever computed it: as CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.explain.sweeps.points import Points
from tpucc.explain.sweeps.rows import columns
from tpucc.output_files import writing

SUFFIXES = (".csv", ".json", ".parquet")
ROWS = 1000
"""Rows that are in memory at a time."""


def require_format(path: Path) -> None:
    """Raises `UsageError` E0563 for a table of another kind, or one whose package is missing."""
    if path.suffix not in SUFFIXES:
        help = (f"the page is written beside the table: -o {path.stem}.csv gives {path.stem}.html too",) if path.suffix == ".html" else ()
        raise UsageError(Diagnostic("E0563", f"a table of a sweep is .csv, .json or .parquet, not {path.name}", help=help))
    if path.suffix == ".parquet":
        _pyarrow()


def write_table(found: Points, path: Path) -> None:
    """Writes all rows, each as soon as it is read. Raises `UsageError` E0563 and E0505."""
    require_format(path)
    with writing(path) as stream:
        {".csv": _csv, ".json": _json, ".parquet": _parquet}[path.suffix](found, stream)


def _csv(found: Points, stream: BinaryIO) -> None:
    text = io.TextIOWrapper(stream, "utf-8", newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns(found.plan))
    table.writerows([_cell(value) for value in row.values()] for row in found)
    text.flush()
    text.detach()


def _cell(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value


def _json(found: Points, stream: BinaryIO) -> None:
    """A list with an object a line."""
    for place, row in enumerate(found):
        stream.write(b",\n" if place else b"[\n")
        stream.write(json.dumps(row, ensure_ascii=False).encode())
    stream.write(b"\n]\n")


def _parquet(found: Points, stream: BinaryIO) -> None:
    arrow, parquet = _pyarrow()
    kinds = {int: arrow.int64(), float: arrow.float64(), str: arrow.string()}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in columns(found.plan).items()])
    with parquet.ParquetWriter(stream, schema) as writer:
        for rows in _some(found):
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))


def _some(found: Points) -> Iterator[list[dict[str, Any]]]:
    rows = iter(found)
    while some := [row for _, row in zip(range(ROWS), rows, strict=False)]:
        yield some


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        mend = "python -m pip install 'tpucc[parquet]' installs it; .csv and .json need nothing"
        raise UsageError(Diagnostic("E0563", "a table in Parquet needs the package pyarrow, which isn't installed", help=(mend,))) from None
    return pyarrow, pyarrow.parquet
