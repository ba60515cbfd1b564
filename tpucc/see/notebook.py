"""The views of a compiled model and of its stages in a notebook, as HTML and as pictures.

Notebooks strip style sheets and scripts from what they don't trust: the summary has neither, and the report stands in a frame of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tpucc.diagnostics import printable
from tpucc.explain.quantities import size
from tpucc.explain.summary import facts, machine_of
from tpucc.explain.timed import Timed
from tpucc.interop.sources import require_kept
from tpucc.output_files import write_file
from tpucc.see.page.summary import answer_list, layer_table, left_out
from tpucc.see.svg import Markup, escaped, row, table, tag

MOST_PAGE = 8 << 20
"""Characters of a report that a notebook is asked to hold; a larger one belongs into a file."""
HEIGHT = 800


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """The report as a value: a notebook shows it in a frame, `save` writes it as a file that needs nothing else."""

    title: str
    html: str
    reads: tuple[Path, ...] = ()
    """The files that it was made from, which it doesn't take the place of."""

    def __repr__(self) -> str:
        return f"<the report of {self.title}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page. Raises `UsageError` when that can't be done."""
        require_kept([Path(path)], self.reads)
        write_file(Path(path), self.html.encode())

    def _repr_html_(self) -> str:
        """The page in a frame that may run its own script, and can't reach the notebook."""
        if len(self.html) > MOST_PAGE:
            return tag("p", _text(f"The report of {self.title} has {size(len(self.html))}, too much for a notebook: save(path) writes it."))
        other = _text(f"The report of {self.title}: save(path) writes it.")
        return tag("iframe", other, sandbox="allow-scripts", width="100%", height=HEIGHT, title=repr(self), srcdoc=self.html)


def summary_html(runtime: Timed) -> str:
    """The model's numbers, and a table of its layers: their size, their cycles, and where those go."""
    stats = runtime.stats
    head = tag("p", tag("strong", _text(f"{stats['model']} on {machine_of(stats)}")))
    numbers = table((), (row(map(_text, fact)) for fact in facts(stats)))
    return tag("div", head, answer_list(stats, runtime.faster), numbers, layer_table(stats), left_out(stats))


def _text(text: str) -> Markup:
    return escaped(printable(text))


@dataclass(frozen=True, repr=False)
class Shown:
    """A stage's value: `print` shows its text form and a notebook its picture; other attributes are those of the value."""

    value: Any
    _title: str
    _text: Callable[[bool], str]
    _svg: Callable[[], str]

    def __repr__(self) -> str:
        return f"<{self._title}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, with_data: bool = False) -> str:
        """The text form, for `resume`. Large constants are digests; with `with_data` they are in full."""
        return self._text(with_data)

    def _repr_svg_(self) -> str:
        return self._svg()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.value, name)
