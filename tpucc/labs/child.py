"""A submission in a child process, as a test of a lab asks it: all calls together have a budget of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tpucc.guest.child import Answer
from tpucc.guest.child import Child as Process
from tpucc.guest.jails import Cell, Jail
from tpucc.guest.limits import Duration
from tpucc.guest.serving import Request
from tpucc.guest.values import Plain, require_plain
from tpucc.plugins.failures import Failed, failing
from tpucc.plugins.printed import shortened

START = 60.0
"""Seconds in which a child must be there: it imports NumPy on a machine that may be busy."""
LOADING = 10.0
"""Seconds of processor time in which a submission's file must be loaded."""
CALL = 10.0
"""Seconds of processor time of one call, unless a test gives another limit."""
BY_THE_CLOCK = 5
"""A limit of processor time, as often by the clock, ends what only waits. It is long because a busy machine lets everybody wait."""
WAITING = 10.0
"""Seconds by the clock after which a call is ended that has computed next to nothing: no machine is so busy that it holds up a call by so
much, and what it waits for doesn't come."""
PATIENCE = 3
"""Calls of a function that may take too long; after these, it isn't asked any more."""
BUDGET = 60.0
"""Seconds of processor time of a submission in all: of its calls, and of loading it again after those that end. Tests need a few. By the
clock, the grader waits `BY_THE_CLOCK` times as long for all of it."""
ROUNDED = 0.1
"""Seconds to which the rest of the budget is rounded."""
LOAD = "loading the file"
MODULE = "submission"
"""The name of a submission's module."""


class Child:
    """A submission in a jail, as `lab.Submission` has it. To be closed."""

    def __init__(self, jail: Jail, cell: Cell, modules: Sequence[str]) -> None:
        self._process, self._cell = Process(jail, cell, modules), cell
        self._file = jail.place(cell)
        self._late, self._spent, self._waited = Counter[str](), 0.0, 0.0
        self._began = False
        self._names: tuple[str, ...] = ()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def printed(self) -> str:
        """What the submission has printed since this was asked, `shortened`."""
        return shortened(*self._process.printed())

    @property
    def spent(self) -> float:
        """Seconds of processor time that all calls have taken."""
        return self._spent

    def defines(self) -> tuple[str, ...]:
        """The names of what can be called in the submission's main file. Raises `Failed`."""
        self.load()
        return self._names

    def text(self, name: str) -> str:
        """The text of a file of the submission."""
        with failing("result", name):
            return (self._cell.submission / name).read_text("utf-8")

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        """What the submission's function returns. Raises `Failed`; after a time-out or an end the next call has a fresh process."""
        limit = seconds or CALL
        if self._late[LOAD]:  # what doesn't load the first time isn't loaded again
            raise Failed("time", f"not asked: {LOAD} took too long")
        if self._late[function] >= PATIENCE:
            raise Failed("time", f"not asked: {PATIENCE} calls of {function} took too long")
        if self._spent >= BUDGET or self._waited >= BUDGET * BY_THE_CLOCK:
            most = f"{BUDGET:g} s of processor time, and {BUDGET * BY_THE_CLOCK:g} s by the clock"
            raise Failed("time", f"not asked: all calls together have {most}")
        self.load()
        clock = min(limit * BY_THE_CLOCK, self._rest(BUDGET * BY_THE_CLOCK, self._waited))
        most_of_call = Duration(min(limit, self._rest(BUDGET, self._spent)), clock, WAITING)
        return self._answered(Request(MODULE, function, arguments, most_of_call), function)

    def load(self) -> None:
        """Starts a process that has the submission, where there is none. Raises `Failed` when its file can't be loaded."""
        if not self._process.is_there:
            left = self._rest(BUDGET * BY_THE_CLOCK, self._waited) if self._began else START
            most = Duration(LOADING, min(START, left), WAITING)
            found = self._answered(Request(MODULE, "", (), most, self._file), LOAD)
            self._names = tuple(map(str, found)) if isinstance(found, list) else ()

    def close(self) -> None:
        """Ends the process and all that it started."""
        self._process.close()

    @staticmethod
    def _rest(most: float, used: float) -> float:
        """What is left of a budget, in seconds."""
        return max(ROUNDED, round(most - used, 1))

    def _answered(self, request: Request, doing: str) -> Plain:
        """The value of an answer. Raises `Failed`."""
        answer = self._process.ask(request)
        if self._began:  # the first process starts on a machine that may be busy
            self._count(answer, request.most.processor)
        self._began = True
        if answer.failure is None:
            return require_plain(answer.value)
        is_there = self._process.is_there
        if doing == LOAD:
            self._process.close()
        if not is_there:
            raise self._unanswered(answer, answer.failure, doing)
        raise answer.failure

    def _count(self, answer: Answer, most: float) -> None:
        """Adds to what the submission has spent. It says itself how much processor time that was: no more than was waited is believed, and
        what was waited has a limit of its own. Of a call that took too long, its limit counts."""
        self._waited += answer.clock
        said = answer.processor if answer.processor is not None and not answer.limit else most
        self._spent += min(answer.clock, max(0.0, said))

    def _unanswered(self, answer: Answer, failure: Failed, doing: str) -> Failed:
        """A failure to answer, with what was asked."""
        message = failure.message
        if answer.limit:
            self._late[doing] += 1
        computed = answer.limit == "processor"
        used, most = (self._spent, BUDGET) if computed else (self._waited, BUDGET * BY_THE_CLOCK)
        if answer.limit in ("processor", "clock") and used > most - ROUNDED and doing != LOAD:
            limit = f"{most:g} s {'of processor time' if computed else 'by the clock'}"
            message = f"was stopped{' there' if failure.frames else ''}: the {limit} of all calls together are used up"
        return Failed(failure.kind, f"{doing}: {message}", failure.frames, failure.left_out)
