"""A network compiled with what a submission defines, and the plain stages for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np

from tpucc import api
from tpucc.api import Executable
from tpucc.back_end import STAGES
from tpucc.diagnostics import Error
from tpucc.guest.stages import asked
from tpucc.ir import Graph
from tpucc.labs.judging import judged
from tpucc.labs.lab import Submission, judging_seed
from tpucc.labs.race.baseline import PLAIN
from tpucc.labs.race.networks import Network
from tpucc.labs.race.returned import returned_graph
from tpucc.layers.partition import partition
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Boundary, Given, View
from tpucc.passes.base import Context, GraphPass, Pass
from tpucc.plugins.failures import Failed, failure_behind
from tpucc.plugins.judged import NOISE, NOISE_STAGE
from tpucc.runtime.check import float_reference, random_inputs
from tpucc.stages import Stages
from tpucc.target import Target

REWRITE = "rewrite"
FUNCTIONS = (*STAGES, REWRITE)
"""What a submission may define."""
SHOWN = 2
"""Findings of the compiler that are told."""
DRAWS = 16
"""Random inputs on which noise is measured, where it must be known better than from one."""
FREE = (Boundary, Given, View)
"""What the host does for every program, and what costs it nothing: inputs and constants, to integers and back, other shapes."""


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

    def wrong(self) -> str:
        """What is wrong with the program, or nothing."""
        if self.moved:
            return f"the host computes what the device is to compute: {self.moved}"
        verdict, problem = judged(self.exe)
        noise = verdict.first_difference is not None and verdict.first_difference.stage == NOISE_STAGE
        return "" if noise and self._is_as_exact(judging_seed()) else problem

    def _is_as_exact(self, seed: int) -> bool:
        """Whether quantisation explains the noise on many inputs: on a few values the plain program may be exact by chance."""
        mine, plain = 0.0, 0.0
        for draw in range(DRAWS):
            inputs = random_inputs(self.exe.runtime, seed + draw)
            assert self.plain.compilation is not None
            assert self.plain.compilation.meant is not None
            for name, wanted in float_reference(self.plain.compilation.meant, inputs).items():
                mine += float(np.square(self.exe.run(inputs)[name] - wanted).sum())
                plain += float(np.square(self.plain.run(inputs)[name] - wanted).sum())
        return mine <= NOISE**2 * plain


def rewrite(submission: Submission) -> Pass:
    """The submission's `rewrite`, as a pass."""

    def run(graph: Graph, _: Context) -> Graph:
        try:
            answer = submission.call(REWRITE, graph)
        except Failed as failure:
            if failure.kind != "result":
                raise
            raise Failed("result", f"{REWRITE} {failure.message}; expected a graph") from None
        found = returned_graph(answer, graph)
        return graph if found == graph else found

    return GraphPass(REWRITE, "the submission's rewrite", 0, run, {})


def run(network: Network, target: Target, submission: Submission, functions: Collection[str]) -> Run:
    """The network compiled with these functions of the submission. Raises `Failed`."""
    stages = {stage: partial(asked, partial(submission.call, stage), with_lines=False) for stage in STAGES if stage in functions}
    passes = (rewrite(submission),) if REWRITE in functions else ()
    try:
        exe = compiled(network, target, replace(PLAIN, **stages), passes)
    except Error as error:
        raise _failure(error) from None
    return Run(network, exe, _plain(network, target))


def _failure(error: Error) -> Failed:
    """Why there is no program: a call that failed, or else what the compiler found, without the files in which stages are called."""
    if behind := failure_behind(error):
        return behind
    found = error.diagnostics[1:] or error.diagnostics
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return Failed("wrong", "; ".join(f"{entry.code}: {entry.message}" for entry in found[:SHOWN]) + more)


def compiled(network: Network, target: Target, stages: Stages = PLAIN, passes: tuple[Pass, ...] = ()) -> Executable:
    """The network at -O0."""
    return api.compile_source(network.text, name=f"{network.name}.tpu", target=target, level=0, stages=stages, passes=passes)


_plain = cache(compiled)


def _host_work(exe: Executable) -> Counter[str]:
    """How often the host computes each operator."""
    parts = partition(exe.layers.value)
    graphs = (parts.prologue, parts.epilogue, *(step.graph for step in parts.middle))
    return Counter(node.op for graph in graphs for node in graph if not isinstance(legalisation_of(node.op), FREE))
