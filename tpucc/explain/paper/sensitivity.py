"""Figure 11: how much faster other designs are, each application compiled again for each design."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

from tpucc.explain.paper.applications import Measured, known, seconds_on
from tpucc.explain.paper.figures import Figure, Section
from tpucc.explain.paper.published import published
from tpucc.target import Target, load_target, with_overrides

Progress = Callable[[str], None]
Speedups = Mapping[str, float]
"""Times as fast, by application."""


def scaled(target: Target, factors: Mapping[str, float]) -> Target:
    """`target` with some of its numbers multiplied."""
    return with_overrides(target, {field: getattr(target, field) * factor for field, factor in factors.items()})


PRIME = "tpu_v1_prime"


def speedups(programs: Mapping[str, Path], base: Mapping[str, Measured], target: Target, progress: Progress) -> dict[str, Speedups]:
    """By the title of a design of figure 11, or `PRIME`: the applications whose shapes are known well enough, on it instead of on `target`,
    on which they take what `base` says."""
    designs = {variant.title: scaled(target, variant.scale) for variant in published().variants} | {PRIME: load_target(PRIME)}
    found: dict[str, dict[str, float]] = {title: {} for title in designs}
    for name, path in known(programs).items():
        progress(f"{path.name}, {len(designs)} designs")
        for title, seconds in zip(designs, seconds_on(path, list(designs.values())), strict=True):
            found[title][name] = base[name].seconds / seconds
    return dict(found)


def sensitivity_section(of_designs: Mapping[str, Speedups]) -> Section:
    """Each design of figure 11 against the target."""
    figures = []
    for variant in published().variants:
        for name, application in published().applications.items():
            about, ours = variant.about[application.kind], of_designs[variant.title].get(name)
            figures.append(Figure(variant.title, name.upper(), "×", about, ours, about=True))
    notes = (
        "Times as fast as on the target. The paper draws weighted means and says in words what kinds of applications do; 1 stands for "
        "“almost no impact”, “little benefit” and “slightly degrades”.",
        "A 512×512 unit has as many bytes of unified buffer, and as many accumulators unless it says ×4.",
    )
    return Section("figure_11", "Sensitivity (figure 11)", tuple(figures), notes)


def prime_section(of_prime: Speedups) -> Section:
    """TPU′ against TPU v1: each application, and the means over those that have a program."""
    paper = published().prime
    figures = [Figure(name.upper(), "", "×", None, speedup) for name, speedup in of_prime.items()]
    figures.append(Figure("geometric mean", "", "×", paper.geometric_mean, _geometric_mean(of_prime)))
    figures.append(Figure("weighted mean", "", "×", paper.weighted_mean, _weighted_mean(of_prime)))
    weights = "Weights are table 1's shares of deployed inferences, half of a pair's each."
    missing = [name.upper() for name in published().applications if name not in of_prime]
    note = f"The paper's means are over all six applications, ours without {', '.join(missing)}." if missing else ""
    return Section("tpu_prime", "TPU′, with GDDR5 weight memory (section 7)", tuple(figures), tuple(filter(None, (weights, note))))


def _geometric_mean(speedups: Speedups) -> float:
    return math.exp(math.fsum(math.log(value) for value in speedups.values()) / len(speedups))


def _weighted_mean(speedups: Speedups) -> float:
    shares = {name: published().applications[name].share for name in speedups}
    return math.fsum(shares[name] * value for name, value in speedups.items()) / math.fsum(shares.values())
