"""What workers do of a class: they grade its submissions, each by a process of its own, so that whatever happens there the others go on."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from platform import node
from typing import Any

from tpucc.diagnostics import Error
from tpucc.guest.jails import Jail
from tpucc.labs.grading import Contents, isolated
from tpucc.tasks.processes import environment

LONGEST = 600
"""Seconds after which one submission's grader is ended: what it has found until then counts. The submission itself has less, `child.START`
and by the clock `child.BUDGET`; the rest is for judging."""
ENDING = 10
"""Seconds in which a grader ends what it has started."""
Results = dict[str, Any]
"""What `results.json` has of a submission."""


@dataclass(frozen=True)
class Grading:
    """The results of submissions. A worker on another machine finds a jail of its own: `jail` is None then."""

    lab: int
    seed: int
    jail: Jail | None

    def begun(self) -> Callable[[Contents], Results]:
        """The results of a submission. Without a jail on this machine each is refused, and not graded."""
        try:
            return partial(_graded, self if self.jail is not None else replace(self, jail=isolated()))
        except Error as error:
            said = error.diagnostics[0]
            return partial(_refused, f"{said.code} on {node()}: {said.message}")

    def lost(self, how: str) -> Results:
        return ungraded(how)


def ungraded(problem: str) -> Results:
    """The results of a submission that wasn't graded."""
    return {"score": 0, "max_score": 100, "output": problem, "tests": [], "extra_data": {}}


def _refused(problem: str, _: Contents) -> Results:
    return ungraded(problem)


def _graded(grading: Grading, contents: Contents) -> Results:
    """The last results of a submission's grader, in bounds of time."""
    lines, problem = _run(pickle.dumps((grading, contents)))
    whole = lines.split(b"\n")[:-1]
    return dict(json.loads(whole[-1])) if whole else ungraded(problem or "the grader ended without results")


def _run(asked: bytes) -> tuple[bytes, str]:
    """Runs a grader; returns the lines of its results, and what else it says."""
    words, pipe = [sys.executable, "-P", "-m", "tpucc.labs.grader_process"], subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment()) as process:
        try:
            results, said = process.communicate(asked, timeout=LONGEST)
        except subprocess.TimeoutExpired as late:
            return late.stdout or b"", f"the grader took longer than {LONGEST} s"
        finally:
            _end(process)
    return results, said.decode("utf-8", "replace").strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Lets a grader that still runs end the submission and take away its files; kills it when it doesn't."""
    process.terminate()
    try:
        process.wait(ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
