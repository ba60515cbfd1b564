"""A network compiled with what a submission defines, and the plain stages for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

from tpucc import api
from tpucc.api import Executable
from tpucc.back_end import STAGES
from tpucc.diagnostics import Error
from tpucc.guest.files import stage_result
from tpucc.guest.values import Plain
from tpucc.ir import Graph
from tpucc.labs.judging import judged_beside, read_graph
from tpucc.labs.lab import Submission
from tpucc.labs.plain_stages import PLAIN
from tpucc.labs.race.networks import Network
from tpucc.layers.partition import partition
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Boundary, Given, View
from tpucc.passes.base import Context, GraphPass, Pass
from tpucc.plugins.failures import Failed, failure_behind
from tpucc.stages import Stages
from tpucc.target import Target

REWRITE = "rewrite"
FUNCTIONS = (*STAGES, REWRITE)
"""What a submission may define."""
SHOWN = 2
"""Findings of the compiler that are told."""
NODES = 50
"""Nodes that a graph may have more than twice those of the one before it."""
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
        return judged_beside(self.exe, self.plain)


Look = Callable[[Plain], object]
"""Is shown what `rewrite` returned, whether a program can be made of it or not."""


def rewrite(submission: Submission, look: Look) -> Pass:
    """The submission's `rewrite`, as a pass."""

    def run(graph: Graph, _: Context) -> Graph:
        try:
            answer = submission.call(REWRITE, graph)
        except Failed as failure:
            if failure.kind != "result":
                raise
            raise Failed("result", f"{REWRITE} {failure.message}; expected a graph") from None
        look(answer)
        found = returned_graph(answer, graph)
        return graph if found == graph else found

    return GraphPass(REWRITE, "the submission's rewrite", 0, run, {})


def run(network: Network, target: Target, submission: Submission, functions: Collection[str], look: Look = lambda _: None) -> Run:
    """The network compiled with these functions of the submission. Raises `Failed`."""
    stages = {stage: partial(stage_result, partial(submission.call, stage), with_lines=False) for stage in STAGES if stage in functions}
    passes = (rewrite(submission, look),) if REWRITE in functions else ()
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


def returned_graph(found: Plain, given: Graph) -> Graph:
    """The graph that `rewrite` made of `given`. Raises `Failed`.

    Whatever a rewrite does, the model stays the same from outside: its name, its inputs with their types, its outputs with their names and
    types. Nodes say what is computed, and not where. What they compute is compared by values, elsewhere.
    """
    made = read_graph(found, given, "rewrite ")
    if (problem := next(_problems(made, given), "")) != "":
        raise Failed("wrong", f"rewrite {problem}")
    return replace(made, name=given.name, source=given.source, notes=())


def _problems(made: Graph, given: Graph) -> Iterator[str]:
    """What a rewrite may not change, and did."""
    if constant := sorted(_constants(made) - _constants(given)):
        yield f"made a constant of {', '.join(constant)}: what the model returns depends on its inputs"
    for node in made:
        if node.place is not None or node.holds:
            yield f"said where {node.name} is computed, or what it holds; later passes do that"
    most = 2 * len(given) + NODES
    if len(made) > most:
        yield f"made {len(made):,} nodes of {len(given):,}; at most {most:,} are compiled"


def _constants(graph: Graph) -> set[str]:
    """The outputs that depend on no input. Nodes stand behind their operands."""
    varying = set[str]()
    for node in graph:
        if node.is_input or not varying.isdisjoint(node.operands):
            varying.add(node.name)
    return {output.name for output in graph.outputs if output.node not in varying}
