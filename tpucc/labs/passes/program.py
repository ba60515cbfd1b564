"""A program that is compiled with the submission's passes in the place of tpucc's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tpucc import api
from tpucc.ir import Graph
from tpucc.labs.judging import judged
from tpucc.labs.lab import Outcome, Submission
from tpucc.labs.passes.comparing import ask, different, listing, wanted
from tpucc.labs.passes.rules import Rules
from tpucc.passes.base import Context
from tpucc.plugins.failures import Failed


@dataclass(frozen=True)
class Asked:
    """A built-in pass, by its name, that a function of the submission stands in for. Raises `Failed` where that leaves another graph than
    it should."""

    name: str
    function: str
    rules: Rules
    submission: Submission
    summary: str = "the submission's"
    level: int = 0

    def run(self, graph: Graph, context: Context) -> Graph:
        made = ask(self.function, graph, self.submission)
        if problem := different(graph, made, wanted(self.function, graph, self.rules)):
            raise Failed("wrong", f"{problem}\nin the graph\n{listing(graph)}")
        return made


def compiled(rules: Rules, batch: int, submission: Submission) -> Outcome:
    """The program, compiled and judged."""
    exe = api.compile_source(MODEL, params={"batch": batch}, target="tiny", passes=tuple(_passes(rules, submission)))
    verdict, problem = judged(exe)
    if problem:
        return Outcome(0, problem, f"-D batch={batch}")
    return Outcome(1, f"compiled and equal: {len(exe.layers.value)} nodes of layers, {verdict.cycles:,} cycles")


def _passes(rules: Rules, submission: Submission) -> Iterator[Asked]:
    names = {"constant-folding": "fold_constants", "fuse-bias": "fuse_bias", "fuse-activation": "fuse_activation"}
    for name, function in names.items():
        yield Asked(name, function, rules, submission)


MODEL = Path(__file__).with_name("model.tpu").read_text("utf-8")
