"""What workers do of a sweep: they compile and time its points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tpucc.explain.sweeps.plan import Plan
from tpucc.explain.sweeps.rows import Row, failed, measured
from tpucc.explain.sweeps.shared import Compiler
from tpucc.tasks.work import refused


@dataclass(frozen=True)
class Measuring:
    """The rows of a plan's points. `identity` is what the plan is of, for workers that may see other files; None where they can't."""

    plan: Plan
    identity: Mapping[str, Any] | None

    def begun(self) -> Callable[[int], Row]:
        """The row of a point, by a compiler that keeps what points share. Raises `UsageError` E0562 where the files aren't the same."""
        for name, value in self.identity.items() if self.identity is not None else ():
            if (own := self.plan.identity[name]) != value:
                raise refused(f"a worker sees other files: {name} is {own}, not {value}")
        return partial(measured, Compiler(), self.plan)

    def lost(self, how: str) -> Row:
        return failed("E0613", how)
