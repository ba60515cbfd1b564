"""A pass of the user's as the compiler runs it: called as code of the user's, and its result checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tpucc.ir import Graph
from tpucc.passes.base import Context, Pass, UserPass, with_options
from tpucc.plugins.checked import rewritten, verify_rewritten
from tpucc.plugins.code import UserCode


@dataclass(frozen=True)
class GuardedPass(UserPass):
    """Runs the user's object `step`. Every error names its code. It can read its arguments, but not write them."""

    code: UserCode
    step: Pass

    def run(self, graph: Graph, context: Context) -> Graph:
        result = self.code.call(self.rewritten, graph, replace(context))  # its own: a pass may change it
        self.code.call(verify_rewritten, result, graph)
        return result

    def rewritten(self, graph: Graph, context: Context) -> Graph:
        """What the user's pass makes, which isn't verified yet. Raises `Unfit`, and whatever the pass raises."""
        return rewritten(lambda given: self.step.run(given, context), graph)

    def configured(self, values: Mapping[str, object]) -> UserPass:
        return replace(self, step=self.code.call(with_options, self.step, values))
