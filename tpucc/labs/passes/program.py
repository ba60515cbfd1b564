"""A program that is compiled with the submission's passes in the place of tpucc's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tpucc import api
from tpucc.ir.graph import Graph
from tpucc.labs.judging import judged
from tpucc.labs.lab import Failed, Outcome, Submission
from tpucc.labs.passes.comparing import ask, different, listing, wanted
from tpucc.labs.passes.rules import Rules
from tpucc.passes.base import Context


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


MODEL = """\
param batch = 4
weights random(seed=2)

def dense(x, units, name):
    weight w: f32[units, x.shape[-1]] = "{name}.w"
    weight b: f32[units] = "{name}.b"
    return x @ transpose(w, [1, 0]) + b

model lab2(x: f32[batch, 5] in [-1.0, 1.0]):
    h = relu(dense(x, 6, "h"))
    g = leaky_relu(dense(h, 4, "g"), alpha=0.125)
    return dense(g, 3, "out") + h[:, 0:3]
"""
