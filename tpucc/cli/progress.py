"""Progress on a terminal: what is being done, on standard error, for work that takes longer than a moment; it vanishes at the end."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from tpucc.cli.messages import say
from tpucc.compilation import Snapshot
from tpucc.diagnostics import printable
from tpucc.options import Options
from tpucc.stage_names import FRONT_STAGES, stage_order

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PATIENCE = 0.5
"""Seconds before anything is shown."""
SECOND, PAUSE = 1.0, 30.0
"""Seconds between what is said of a class on a terminal, and elsewhere."""
NAMED, NAME = 3, 30
"""Submissions of a class that are named at a time, and characters of a name."""


class Progress:
    """A context in which `stage` says what happens now. Nothing is shown unless `shown` and standard error is a terminal.

    The display starts in a thread of its own, so that one long stage shows too, and rich is imported only then.
    """

    def __init__(self, shown: bool) -> None:
        self.shown = shown and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._lock = threading.RLock()
        self._now = ""
        self._bar: Bar | None = None
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self.shown:
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def stage(self, words: str) -> None:
        """This is done from now on."""
        with self._lock:
            self._now = words
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], description=words)

    def rounds(self, done: int, total: int) -> None:
        """So many rounds of an execution are done, and the next one begins."""
        self.stage(f"execute, round {done + 1:,} of {total:,}")

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While something else is printed the display is away."""
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
            try:
                yield
            finally:
                if self._bar is not None:
                    self._bar.start()

    def say(self, message: str) -> None:
        """Says something that stays."""
        with self.aside():
            say(message)

    def note(self, words: str) -> None:
        self.say(f"note: {words}")

    def close(self) -> None:
        """Takes the display away for good."""
        self._timer.cancel()
        with self._lock:
            self.shown = False
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def _show(self) -> None:
        bar = _bar()
        with self._lock:
            if self.shown:
                self._bar = bar
                self._bar.add_task(self._now, total=None)
                self._bar.start()


class CompileProgress:
    """An observer of a compilation: names the stage after the one that is done."""

    def __init__(self, progress: Progress, options: Options) -> None:
        self._progress, self._options = progress, options
        self._order: tuple[str, ...] = ()
        progress.stage(FRONT_STAGES[0])

    def __call__(self, snapshot: Snapshot) -> None:
        number = snapshot.number + 1
        if number < len(FRONT_STAGES):
            self._progress.stage(FRONT_STAGES[number])
            return
        self._order = self._order or stage_order(self._options)  # not before: an error in the source comes before one in the options
        if number < len(self._order):
            self._progress.stage(f"{printable(self._order[number])}, stage {number + 1} of {len(self._order)}")


class ClassProgress:
    """A context that says how many of a class's submissions are graded, and which are being graded for how long: on a terminal one line
    that is renewed each `SECOND`, and else a line on standard error each `PAUSE`."""

    def __init__(self, total: int) -> None:
        self._progress, self._total, self._finished = Progress(True), total, 0
        self._running: dict[str, float] = {}
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.aside = self._progress.aside

    def __enter__(self) -> Self:
        self._progress.__enter__()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        self._progress.close()

    def begun(self, name: str) -> None:
        with self._lock:
            self._running[name] = monotonic()

    def done(self, name: str) -> None:
        with self._lock:
            self._running.pop(name, None)
            self._finished += 1

    @property
    def words(self) -> str:
        """`4 of 6 graded; being graded: ben (65 s), chris (40 s)`, the longest first."""
        with self._lock:
            times = [f"{printable(name)[:NAME]} ({monotonic() - since:.0f} s)" for name, since in self._running.items()]
            more = [f"{len(times) - NAMED:,} more"] if len(times) > NAMED else []
            now = f"; being graded: {', '.join([*times[:NAMED], *more])}" if times else ""
            return f"{self._finished:,} of {self._total:,} graded{now}"

    def _follow(self) -> None:
        """Says it again and again, in a thread of its own."""
        while not self._over.wait(SECOND if self._progress.shown else PAUSE):
            if self._progress.shown:
                self._progress.stage(self.words)
            else:
                click.echo(self.words, err=True)


SILENT = Progress(False)
"""For callers that show nothing."""


def told(sentences: Iterable[str], progress: Progress = SILENT, quiet: bool = False) -> None:
    """Notes on standard error, unless nothing but errors was asked for."""
    for sentence in () if quiet else sentences:
        progress.note(sentence)


def _bar() -> Bar:
    from rich.console import Console  # imported only when there is something to show
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    spinner = "dots" if console.encoding.startswith("utf") else "line"
    columns = (SpinnerColumn(spinner), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    # Redirecting would put another object in the place of standard output, one that doesn't say which characters a terminal can show.
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
