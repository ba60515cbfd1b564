"""The command line for tests, and a small model to give it."""

from __future__ import annotations

from pathlib import Path

from tpucc.cli.main import main

SMALL = """
param batch = 4
param units = 8
weights random(seed=1)
model small(x: f32[batch, 6] in [-1.0, 1.0]) -> f32[batch, 3]:
    weight w: f32[6, units]
    weight v: f32[units, 3]
    return softmax(relu(x @ w) @ v)
"""


def run(*arguments: str | Path) -> int:
    """The exit status of `tpucc ARGUMENTS`, run in this process."""
    return main([str(argument) for argument in arguments])
