"""A small model to watch, and a recipe that draws next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tpucc.compilation import Compilation
from tpucc.options import Options
from tpucc.runtime.runtime import Runtime
from tpucc.watch.build import Recipe

SMALL = """weights random(seed=1)
model small(x: f32[4, 6] in [-1.0, 1.0]) -> f32[4, 3]:
    weight w: f32[6, 3]
    return softmax(x @ w)
"""
WRONG = SMALL.replace("x @ w", "x @ v")
REPORT_PAGE = b"<!doctype html><html><body><p>cycles</p></body></html>"

Drawing = Callable[[Compilation, Runtime], Mapping[str, bytes]]


def draw(compilation: Compilation, runtime: Runtime) -> Mapping[str, bytes]:
    return {"report.html": REPORT_PAGE, "stats.json": b"{}"}


def recipe(model: Path, drawing: Drawing = draw) -> Recipe:
    """Into the folder `build` beside the model."""
    return Recipe(model, model.parent / "build", Options, drawing)
