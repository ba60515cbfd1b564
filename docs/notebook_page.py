"""The example notebook: executed in place, and written so that only what the code says can change it.

Its cells are edited in Jupyter or by hand; `make docs` runs them again. What differs from one run to the next, or from one machine to
another (times, counts, versions), is left out.
"""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from itertools import groupby
from pathlib import Path
from typing import Any

KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}}
KEPT = {"text/plain": "__repr__", "text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}
"""The forms of a value that the notebook keeps, and the methods that give them."""

Cell = Mapping[str, Any]


def executed(path: Path) -> str:
    """The notebook at `path` with fresh outputs, as JSON. Needs nbclient; raises its `CellExecutionError` when a cell fails."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(path.parent)}}
    quiet = ["--log-level=ERROR"]
    NotebookClient(notebook, kernel_name="python3", record_timing=False, resources=place, extra_arguments=quiet).execute()
    plain = {"cells": [_plain(cell) for cell in notebook.cells], "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(plain, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def code_cells(path: Path) -> Iterator[tuple[str, str]]:
    """For each code cell its source, and what it showed when it was executed: the text that it printed, and the forms of its value."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"]), "".join(map(_shown, cell["outputs"]))


def run_cell(source: str, names: dict[str, object]) -> str:
    """What a cell shows, without a kernel: the text that it prints, and the forms of the value of the expression that it ends in."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if isinstance(last, ast.Expr) else None
    forms = (getattr(value, method, None) for method in KEPT.values() if value is not None)
    return printed.getvalue() + "".join(form() for form in forms if form is not None)


def _plain(cell: Cell) -> dict[str, Any]:
    kept = {"cell_type": cell["cell_type"], "id": cell["id"], "metadata": {}, "source": _lines(cell["source"])}
    if cell["cell_type"] == "code":
        kept |= {"execution_count": None, "outputs": [_output(output) for output in _whole(cell["outputs"])]}
    return kept


def _whole(outputs: Iterable[Cell]) -> Iterator[Cell]:
    """What was printed in one piece: a kernel sends it in as many as time happens to make of it."""
    for (kind, name), group in groupby(outputs, lambda output: (output["output_type"], output.get("name"))):
        if kind == "stream":
            yield {"output_type": kind, "name": name, "text": "".join(output["text"] for output in group)}
        else:
            yield from group


def _output(output: Cell) -> dict[str, Any]:
    if output["output_type"] == "stream":
        return {"output_type": "stream", "name": output["name"], "text": _lines(output["text"])}
    data = {kind: _lines(output["data"][kind]) for kind in KEPT if kind in output["data"]}
    value = {"execution_count": None} if output["output_type"] == "execute_result" else {}
    return {"output_type": output["output_type"], "data": data, "metadata": {}, **value}


def _shown(output: Cell) -> str:
    if output["output_type"] == "stream":
        return "".join(output["text"])
    return "".join("".join(output["data"].get(kind, "")) for kind in KEPT)


def _lines(text: str) -> list[str]:
    """Text as notebooks keep it: a line an item, so that a difference can be read."""
    return text.splitlines(keepends=True)
