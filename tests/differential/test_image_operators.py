"""Random chains of operators on images: grouped and dilated convolutions with all that fuses with them,
pools that reach beyond the end, transposed convolutions,
resized images.

The machine equals the layers' integer reference bit for bit, instruction by instruction too, on three machines; every pass keeps what the
network means in float32.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import tpucc
from tests.support.networks import drawn, elaborated, results
from tests.support.seeds import at_length
from tpucc.diagnostics import Source
from tpucc.driver import compile_source
from tpucc.ir import Graph
from tpucc.options import Options
from tpucc.runtime.check import compare_executors, compare_with_reference, random_inputs
from tpucc.target import Target, load_target

TINY = load_target("tiny")
MIDDLE = {"accumulator_rows": 64, "unified_buffer_rows": 1024, "weight_fifo_tiles": 3, "weight_memory_bytes": 2**24}
TARGETS: dict[str, Target] = {
    "tpu_v1": load_target("tpu_v1"),
    "middle": msgspec.structs.replace(TINY, name="middle", mxu=16, **MIDDLE),
    "tiny": msgspec.structs.replace(TINY, name="bands", unified_buffer_rows=160, accumulator_rows=32, weight_memory_bytes=2**24),
}
COUNT = 10
MEMORIES = {"E0621", "E0622", "E0623"}


class Chain:
    """Operators on images, one after the other; `channels` and `sides` are those of the current value, `h`."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.sides = [self.integer(3, 9), self.integer(3, 9)]
        self.channels = self.integer(1, 7)
        self.lines: list[str] = []
        self._shape = f"f32[{self.integer(1, 2)}, {self.sides[0]}, {self.sides[1]}, {self.channels}]"
        self._seed = seed

    def integer(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high, endpoint=True))

    def one_of(self, *values: str) -> str:
        return values[self.integer(0, len(values) - 1)]

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.lines)}"
        self.lines.append(f"weight {name}: f32[{', '.join(map(str, shape))}]")
        return name

    def let(self, expression: str) -> None:
        self.lines.append(f"h = {expression}")

    @property
    def source(self) -> str:
        body = "\n".join(f"    {line}" for line in ["h = x", *self.lines, "return h"])
        return f"weights random(seed={self._seed})\nmodel net(x: {self._shape} in [-1.0, 2.0]):\n{body}\n"


def pointwise(chain: Chain) -> None:
    """A 1×1 convolution to a number of channels that groups divide."""
    filters = 6 * chain.integer(1, 3)
    chain.let(f"relu(conv2d(h, {chain.weight(1, 1, chain.channels, filters)}) + {chain.weight(filters)})")
    chain.channels = filters


def convolve(chain: Chain) -> None:
    """A convolution with groups, dilation, stride and padding, with or without bias, batch norm and activation."""
    groups = int(chain.random.choice([g for g in range(1, chain.channels + 1) if chain.channels % g == 0]))
    filters = groups * chain.integer(1, 3)
    window, dilation, stride = ([chain.integer(1, high), chain.integer(1, high)] for high in (3, 3, 2))
    extent = [(taps - 1) * apart + 1 for taps, apart in zip(window, dilation, strict=True)]
    same = chain.integer(0, 1) == 1
    sides = [0, 0, 0, 0] if same else [chain.integer(0, 2) for _ in range(4)]
    room = [size + before + after for size, before, after in zip(chain.sides, sides[::2], sides[1::2], strict=True)]
    if not same and any(e > r for e, r in zip(extent, room, strict=True)):
        return
    if not same and chain.integer(0, 2) == 0:
        chain.let(f"pad(h, ((0, 0), ({sides[0]}, {sides[1]}), ({sides[2]}, {sides[3]}), (0, 0)))")
        sides = [0, 0, 0, 0]
    kernel = chain.weight(*window, chain.channels // groups, filters)
    padding = '"same"' if same else f"({', '.join(map(str, sides))})"
    value = f"conv2d(h, {kernel}, stride={tuple(stride)}, padding={padding}, dilation={tuple(dilation)}, groups={groups})"
    value = chain.one_of(value, f"{value} + {chain.weight(filters)}", f"{value} * {chain.weight(filters)}")
    chain.let(chain.one_of("{}", "relu({})", "relu6({})", "sigmoid({})").format(value))
    chain.channels = filters
    ends = [(r - e) // s + 1 for r, e, s in zip(room, extent, stride, strict=True)]
    chain.sides = [-(-size // s) for size, s in zip(chain.sides, stride, strict=True)] if same else ends


def pool(chain: Chain) -> None:
    """A pool whose last window may reach beyond the end; an average of padding that counts, or doesn't."""
    size, stride = [chain.integer(1, 4), chain.integer(1, 4)], [chain.integer(1, 3), chain.integer(1, 3)]
    sides = [chain.integer(0, min(2, size[at // 2] - 1)) for at in range(4)]
    if any(s > n for s, n in zip(size, chain.sides, strict=True)):
        return
    ends = [-(-(n + a + b - s) // t) for n, a, b, s, t in zip(chain.sides, sides[::2], sides[1::2], size, stride, strict=True)]
    chain.sides = [min(last, (n + a - 1) // t) + 1 for last, n, a, t in zip(ends, chain.sides, sides[::2], stride, strict=True)]
    kind = chain.one_of("max_pool", "avg_pool", "avg_pool", "avg_pool")
    counted = f", count_padding={chain.integer(0, 1) == 1}" if kind == "avg_pool" else ""
    chain.let(f"{kind}(h, {tuple(size)}, stride={tuple(stride)}, padding={tuple(sides)}, ceil=True{counted})")


def spread(chain: Chain) -> None:
    """A transposed convolution: windows that overlap, meet, or leave pixels between them, with or without a bias and an activation."""
    window, stride = [chain.integer(1, 4), chain.integer(1, 4)], [chain.integer(1, 3), chain.integer(1, 3)]
    whole = [(n - 1) * s + max(k, s) for n, k, s in zip(chain.sides, window, stride, strict=True)]
    if max(whole) > 16:
        return
    filters, sides = chain.integer(1, 6), [chain.integer(0, 2) for _ in range(4)]
    left = [n - a - b for n, a, b in zip(whole, sides[::2], sides[1::2], strict=True)]
    padding, after = chain.one_of('"same"', '"valid"', str(tuple(sides))), [n * s for n, s in zip(chain.sides, stride, strict=True)]
    if padding != '"same"':
        after = whole if padding == '"valid"' else left
    if min(after) < 1:
        return
    value = f"conv_transpose2d(h, {chain.weight(*window, chain.channels, filters)}, stride={tuple(stride)}, padding={padding})"
    value = chain.one_of(value, f"{value} + {chain.weight(filters)}", f"{value} * {chain.weight(filters)} - {chain.weight(filters)}")
    chain.let(chain.one_of("{}", "relu({})", "tanh({})").format(value))
    chain.channels, chain.sides = filters, after


def enlarge(chain: Chain) -> None:
    """Every pixel several times; or other pixels, or mixtures of them, by the host."""
    factors = [chain.integer(1, 3), chain.integer(1, 3)]
    after = (
        [n * f for n, f in zip(chain.sides, factors, strict=True)] if chain.integer(0, 2) else [chain.integer(1, 9), chain.integer(1, 9)]
    )
    if max(after) <= 16:
        mode = chain.one_of("nearest", "nearest", "bilinear")
        chain.let(f'resize(h, {tuple(after)}, mode="{mode}")')
        chain.sides = after


def pick(chain: Chain) -> None:
    """Some of the channels, which a grouped convolution before lets through."""
    start = chain.integer(0, chain.channels - 1)
    stop = chain.integer(start + 1, chain.channels)
    chain.let(f"h[:, :, :, {start}:{stop}]")
    chain.channels = stop - start


MOVES = (pointwise, convolve, convolve, pool, pool, spread, spread, enlarge, pick)


def chain_of(seed: int) -> str:
    chain = Chain(seed)
    for _ in range(chain.integer(1, 4)):
        MOVES[chain.integer(0, len(MOVES) - 1)](chain)
    convolve(chain)
    return chain.source


def check(seed: int, name: str) -> bool:
    """Compares the machine with the references; says whether the network fits the machine's memories."""
    text = chain_of(seed)
    try:
        exe = tpucc.compile_source(text, target=TARGETS[name], level=seed % 3, activation_bits=16 if seed % 5 == 0 else 8)
    except tpucc.Error as error:
        if any(d.code not in MEMORIES for d in error.diagnostics):
            raise AssertionError(f"{error}\n{text}") from error
        return False
    assert exe.compilation is not None
    assert exe.compilation.layers is not None
    inputs = random_inputs(exe.runtime, seed)
    compared = [*compare_with_reference(exe.runtime, exe.compilation.layers, inputs)]
    if name != "tpu_v1" or seed % 4 == 0:
        compared += compare_executors(exe.runtime, inputs)
    assert not [c for c in compared if c.unequal], f"{compared}\n{text}"
    return True


@pytest.mark.parametrize("name", TARGETS)
def test_machine_equals_reference(name: str) -> None:
    assert sum(check(seed, name) for seed in range(COUNT)) >= 0.6 * COUNT


@at_length(1_000, 100)
@pytest.mark.parametrize("name", TARGETS)
def test_machine_equals_reference_at_length(name: str, seeds: range) -> None:
    assert sum(check(seed, name) for seed in seeds) >= 0.4 * len(seeds)


@pytest.mark.parametrize("seed", range(COUNT))
def test_passes_keep_the_meaning(seed: int) -> None:
    """The graph before quantisation computes in float32 what the graph of the source does, but for the order of its roundings."""
    text = chain_of(seed)
    graph = elaborated(text)
    inputs = drawn(graph, seed)
    last = compile_source(Source("net.tpu", text), Path(), Options(stop_after="split-maps")).snapshots[-1].value
    assert isinstance(last, Graph)
    (wanted,), (found,) = results(graph, inputs).values(), results(last, inputs).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(wanted).max())))
