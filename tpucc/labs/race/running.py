"""A network compiled with what a submission defines, and the plain stages for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, ClassVar

import tpucc
from tpucc.api import Executable
from tpucc.ir.graph import Graph
from tpucc.labs.lab import Failed, Submission
from tpucc.labs.race.baseline import PLAIN
from tpucc.labs.race.networks import Network
from tpucc.labs.race.returned import returned_graph
from tpucc.layers.partition import partition
from tpucc.lowering.products import ProductLayer
from tpucc.passes.base import Context
from tpucc.stages.stages import STAGES
from tpucc.target import Target

REWRITE = "rewrite"
FUNCTIONS = (*STAGES, REWRITE)
"""What a submission may define."""
FREE = frozenset({"input", "constant", "quantize", "dequantize", "reshape", "flatten"})
"""What the host does for every program, and what costs it nothing."""


@dataclass(frozen=True)
class Run:
    """A network's program, made with a submission, and the plain one."""

    network: Network
    exe: Executable
    plain: Executable

    @property
    def cycles(self) -> int:
        return max(1, self.exe.runtime.timeline.makespan)

    @property
    def plain_cycles(self) -> int:
        return self.plain.runtime.timeline.makespan

    @property
    def quotient(self) -> float:
        return self.cycles / self.plain_cycles

    @cached_property
    def moved(self) -> str:
        """What the host computes and doesn't for the plain program; nothing where that is nothing."""
        more = _host_work(self.exe) - _host_work(self.plain)
        return ", ".join(f"{count} × {op}" for op, count in more.items())

    def wrong(self, seed: int) -> str:
        """What is wrong with the program, or nothing."""
        if self.moved:
            return f"the host computes what the device is to compute: {self.moved}"
        verdict = tpucc.judge(self.exe, seed=seed)
        if verdict.equal:
            return ""
        return "; ".join(found.message for found in verdict.findings) or str(verdict.first_difference)


@dataclass(frozen=True)
class Rewrite:
    """The submission's `rewrite`, as a pass."""

    submission: Submission
    name: ClassVar[str] = REWRITE
    summary: ClassVar[str] = "the submission's rewrite"
    level: ClassVar[int] = 0

    def run(self, graph: Graph, context: Context) -> Graph:
        found = returned_graph(self.submission.call(REWRITE, graph), graph)
        return graph if found == graph else found


def run(network: Network, target: Target, submission: Submission, functions: Collection[str]) -> Run:
    """The network compiled with these functions of the submission. Raises `Failed`, or a `tpucc.Error`."""
    stages = {stage: _asked(submission, stage) for stage in STAGES if stage in functions}
    passes = (Rewrite(submission),) if REWRITE in functions else ()
    return Run(network, compiled(network, target, replace(PLAIN, **stages), passes), _plain(network, target))


def compiled(network: Network, target: Target, stages: tpucc.Stages = PLAIN, passes: tuple[Rewrite, ...] = ()) -> Executable:
    """The network at -O0."""
    return tpucc.compile_source(network.text, name=f"{network.name}.tpu", target=target, level=0, stages=stages, passes=passes)


_plain = cache(compiled)


def _asked(submission: Submission, stage: str) -> Callable[..., Any]:
    """A stage that asks the submission."""
    return partial(ASK.get(stage, _ask), submission, stage)


def _ask(submission: Submission, stage: str, given: Any) -> Any:
    return submission.call(stage, given)


def _ask_lowering(submission: Submission, stage: str, layer: ProductLayer) -> Any:
    """The built-in lines of a layer stay here."""
    return submission.call(stage, replace(layer, builtin=list))


def _ask_allocate(submission: Submission, stage: str, lives: Any, rows: int) -> Any:
    try:
        return submission.call(stage, lives, rows)
    except Failed as failure:
        if failure.kind == "TooLarge":
            raise tpucc.TooLarge(failure.message) from None
        raise


ASK: Mapping[str, Callable[..., Any]] = {"lower_fc": _ask_lowering, "lower_conv": _ask_lowering, "allocate": _ask_allocate}


def _host_work(exe: Executable) -> Counter[str]:
    """How often the host computes each operator."""
    parts = partition(exe.layers.value)
    graphs = (parts.prologue, parts.epilogue, *(step.graph for step in parts.middle))
    return Counter(node.op for graph in graphs for node in graph if node.op not in FREE)
