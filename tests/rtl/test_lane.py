"""A lane of the activation unit: the bytes of the simulator's functions, for operands and parameter blocks at random and at the edges."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.machines.v1 import Flag, Function
from tpucc.machines.v1.functions import FUNCTIONS, Operands, activate
from tpucc.machines.v1.machine import parameter_block_dtype

pytestmark = pytest.mark.annex

LANES = 4
COUNT = 60
WINDOW = 5


def blocks(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    made = np.zeros(8, parameter_block_dtype(LANES))
    made["bias"] = random.integers(-5000, 5000, (8, LANES))
    made["multiplier"] = random.choice([0.5, 2**-8, 0.0123, 1e-6, 3.0, 2**-126], (8, LANES))
    made["low"], made["high"] = random.choice([-128, -5], 8), random.choice([127, 6], 8)
    for name in ("zero", "zero_a", "zero_b"):
        made[name] = random.choice([-128, -1, 0, 3, 127], 8)
    made["scale_a"], made["scale_b"] = random.choice([0.5, 0.0371, 1e-3, 1.0], 8), random.choice([0.5, 0.7253, 1.0], 8)
    made["has_table"], made["table"] = random.integers(0, 2, 8), random.integers(-128, 128, (8, 256))
    return made


def memories(rtl: ModuleType, made: np.ndarray) -> dict[str, dict[int, int]]:
    from tpucc.cosimulation.simulate import fields_of
    from tpucc.rtl.lane import block_layout

    words = {number: block_layout(LANES).word(fields_of(block)) for number, block in enumerate(made)}
    return {
        "blocks": words,
        "tables": {n << 8 | value: int(b["table"][(value + 128) % 256]) & 255 for n, b in enumerate(made) for value in range(256)},
    }


def signed_bytes(random: np.random.Generator, count: int) -> np.ndarray:
    return np.where(random.random(count) < 0.3, random.choice([-128, -1, 0, 127], count), random.integers(-128, 128, count)).astype(np.int8)


@each([1, 2, 3])
def test_activate(seed: int, rtl: ModuleType) -> None:
    from tpucc.rtl.lane import ACTIVATE

    made, random = blocks(seed), np.random.default_rng(seed)
    lane = rtl.unit("lane", memories(rtl, made))
    for number, block in enumerate(made):
        lane.step(block_in_use=number)
        sums = np.concatenate([random.integers(-(2**20), 2**20, COUNT), np.arange(-20, 20) * 2**7, [2**30, -(2**30)]]).astype(np.int32)
        wanted = activate(sums[:, None], block)[:, 0]
        for total, value in zip(sums, wanted, strict=True):
            found = lane.step(function=ACTIVATE, acc=int(total), block_in_use=number)["result"]
            assert rtl.signed(found, 8) == value, (number, total)


@each([Function.COPY, Function.TABLE, Function.ADD, Function.SUBTRACT, Function.MULTIPLY])
def test_vector(function: Function, rtl: ModuleType) -> None:
    made, random = blocks(4), np.random.default_rng(int(function))
    lane = rtl.unit("lane", memories(rtl, made))
    for number, block in enumerate(made):
        lane.step(block_in_use=number)
        a, b = signed_bytes(random, COUNT), signed_bytes(random, COUNT)
        wanted = computed(function, block, a=a[:, None], b=b[:, None])[:, 0]
        for one, other, value in zip(a, b, wanted, strict=True):
            found = lane.step(function=int(function), a=int(one), b=int(other), first=1, active=1, block_in_use=number)["result"]
            assert rtl.signed(found, 8) == value, (number, one, other)


@each([Function.MAX, Function.AVERAGE, Function.WEIGHTED])
def test_pool(function: Function, rtl: ModuleType) -> None:
    """A window's rows come one after the other, with cycles between them in which the unit waits."""
    made, random = blocks(5), np.random.default_rng(int(function))
    lane = rtl.unit("lane", memories(rtl, made))
    for number, block in enumerate(made):
        lane.step(block_in_use=number)
        for _ in range(COUNT // WINDOW):
            a, b = signed_bytes(random, WINDOW), signed_bytes(random, WINDOW)
            wanted = computed(function, block, a=a[None, :, None], b=b[:, None])[0, 0]
            for row, (one, other) in enumerate(zip(a, b, strict=True)):
                given = {"function": int(function), "first": int(row == 0), "block_in_use": number}
                found = lane.step(a=int(one), b=int(other), active=1, **given)["result"]
                lane.step(a=int(random.integers(-128, 128)), b=99, active=0, **given)
            assert rtl.signed(found, 8) == wanted, (number, a, b)


def computed(function: Function, block: np.void, **operands: Any) -> np.ndarray:
    """By the machine's table; of the columns of the block the first."""
    first = np.zeros((), parameter_block_dtype(1))
    for name in block.dtype.names or ():
        first[name] = block[name][:1] if name in ("bias", "multiplier") else block[name]
    return np.asarray(FUNCTIONS[function].compute(Operands(Flag(0), block=first[()], **operands)))
