"""A program that is compiled with the submission's passes in the place of tpucc's."""

from __future__ import annotations

from pathlib import Path

from tpucc import api
from tpucc.ir import Graph
from tpucc.labs.judging import judged
from tpucc.labs.lab import Outcome, Submission
from tpucc.labs.passes.comparing import ask, different, listing, wanted
from tpucc.labs.passes.rules import Rules
from tpucc.passes.base import Context, GraphPass, Pass
from tpucc.plugins.failures import Failed

PASSES = {"constant-folding": "fold_constants", "fuse-bias": "fuse_bias", "fuse-activation": "fuse_activation"}
"""The functions of a submission that stand in for built-in passes."""


def compiled(rules: Rules, batch: int, submission: Submission) -> Outcome:
    """The program, compiled and judged."""
    passes = tuple(_pass(name, function, rules, submission) for name, function in PASSES.items())
    exe = api.compile_source(MODEL, params={"batch": batch}, target="tiny", passes=passes)
    verdict, problem = judged(exe)
    if problem:
        return Outcome(0, problem, f"-D batch={batch}")
    return Outcome(1, f"compiled and equal: {len(exe.layers.value)} nodes of layers, {verdict.cycles:,} cycles")


def _pass(name: str, function: str, rules: Rules, submission: Submission) -> Pass:
    """A built-in pass, by its name, that a function of the submission stands in for. It raises `Failed` where that leaves another graph
    than it should."""

    def run(graph: Graph, _: Context) -> Graph:
        made = ask(function, graph, submission)
        if problem := different(graph, made, wanted(function, graph, rules)):
            raise Failed("wrong", f"{problem}\nin the graph\n{listing(graph)}")
        return made

    return GraphPass(name, "the submission's", 0, run, {})


MODEL = Path(__file__).with_name("model.tpu").read_text("utf-8")
