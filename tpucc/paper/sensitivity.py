"""Figure 11: how much faster other designs are, each application compiled again for each design."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

from tpucc.paper.applications import Measured, known, measure_file
from tpucc.paper.figures import Figure, Section
from tpucc.paper.published import published
from tpucc.target import Target, load_target, with_overrides

Progress = Callable[[str], None]
Speedups = Mapping[str, float]
"""Times as fast, by application."""


def scaled(target: Target, factors: Mapping[str, float]) -> Target:
    """`target` with some of its numbers multiplied."""
    return with_overrides(target, {field: getattr(target, field) * factor for field, factor in factors.items()})


def sensitivity_section(programs: Mapping[str, Path], base: Mapping[str, Measured], target: Target, progress: Progress) -> Section:
    """Each design of figure 11 against `target`, on which the applications take what `base` says."""
    figures = []
    for variant in published().variants:
        progress(variant.title)
        speedups = _speedups(programs, base, scaled(target, variant.scale))
        for name, application in published().applications.items():
            about = variant.about[application.kind]
            figures.append(Figure(variant.title, name.upper(), "×", about, speedups.get(name), about=True))
    notes = (
        "Times as fast as on the target. The paper draws weighted means and says in words what kinds of applications do; 1 stands for "
        "“almost no impact”, “little benefit” and “slightly degrades”.",
        "A 512×512 unit has as many bytes of unified buffer, and as many accumulators unless it says ×4.",
    )
    return Section("figure_11", "Sensitivity (figure 11)", tuple(figures), notes)


def prime_section(programs: Mapping[str, Path], base: Mapping[str, Measured], progress: Progress) -> Section:
    """TPU′ against TPU v1: each application, and the means over those that have a program."""
    progress("TPU′")
    speedups, paper = _speedups(programs, base, load_target("tpu_v1_prime")), published().prime
    figures = [Figure(name.upper(), "", "×", None, speedup) for name, speedup in speedups.items()]
    figures.append(Figure("geometric mean", "", "×", paper.geometric_mean, _geometric_mean(speedups)))
    figures.append(Figure("weighted mean", "", "×", paper.weighted_mean, _weighted_mean(speedups)))
    weights = "Weights are table 1's shares of deployed inferences, half of a pair's each."
    missing = [name.upper() for name in published().applications if name not in speedups]
    note = f"The paper's means are over all six applications, ours without {', '.join(missing)}." if missing else ""
    return Section("tpu_prime", "TPU′, with GDDR5 weight memory (section 7)", tuple(figures), tuple(filter(None, (weights, note))))


def _speedups(programs: Mapping[str, Path], base: Mapping[str, Measured], target: Target) -> Speedups:
    """Of the applications whose shapes are known well enough."""
    return {name: base[name].seconds / measure_file(path, target).seconds for name, path in known(programs).items()}


def _geometric_mean(speedups: Speedups) -> float:
    return math.exp(math.fsum(math.log(value) for value in speedups.values()) / len(speedups))


def _weighted_mean(speedups: Speedups) -> float:
    shares = {name: published().applications[name].share for name in speedups}
    return math.fsum(shares[name] * value for name, value in speedups.items()) / math.fsum(shares.values())
