"""The order of the passes of training."""

from __future__ import annotations

from collections.abc import Set

from tpucc.diagnostics import counted
from tpucc.passes.base import Pass
from tpucc.passes.common_subexpressions import common_subexpressions
from tpucc.passes.dead_code import dead_code
from tpucc.training.passes.batch_statistics import batch_statistics
from tpucc.training.passes.bfloat16_activations import bfloat16_activations
from tpucc.training.passes.differentiate import differentiate
from tpucc.training.passes.divide import divide_examples
from tpucc.training.passes.draw_dropout import draw_dropout
from tpucc.training.passes.fold import fold_exact
from tpucc.training.passes.logits import logits
from tpucc.training.passes.optimizer import optimizer_step
from tpucc.training.passes.reduce import all_reduce
from tpucc.training.passes.states import states


def training_passes(
    fixed: Set[str],
    cores: int,
    microbatches: int,
    optimizer: str,
    parameters: tuple[tuple[str, float], ...],
    bfloat16: bool = False,
    one_pass: bool = False,
) -> tuple[Pass, ...]:
    """The passes from a loss to a step: without the weights of the keys `fixed`, for a batch in so many parts, with this optimizer."""
    parts = cores * microbatches
    return (
        states(fixed=frozenset(fixed)),
        fold_exact,
        dead_code,
        divide_examples(parts=parts, among=_among(cores, microbatches)),
        batch_statistics(one_pass=one_pass),
        draw_dropout,
        logits,
        common_subexpressions,
        differentiate,
        all_reduce(parts=parts),
        optimizer_step(of=optimizer, parameters=parameters),
        fold_exact,
        common_subexpressions,
        dead_code,
        bfloat16_activations(wanted=bfloat16),
    )


def _among(cores: int, microbatches: int) -> str:
    """What shares the batch."""
    small = counted(microbatches, "microbatch", "microbatches")
    if cores == 1 or microbatches == 1:
        return counted(cores, "core") if microbatches == 1 else small
    return f"{counted(cores, 'core')} of {small}"


TRAINING_PASSES = training_passes(frozenset(), 1, 1, "sgd", (("rate", 0.01),))
"""The passes as they are listed."""
