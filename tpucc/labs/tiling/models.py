"""Models of one layer, to be lowered by a submission; and how many cycles they take with the built-in lowering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tpucc import api
from tpucc.explain.comparison.pairs import spent
from tpucc.labs.lab import filled
from tpucc.labs.solutions import recorded
from tpucc.labs.tiling.rules import Rules
from tpucc.stages import Stages

BUFFER_ROWS = 1024
"""Rows of the unified buffer: enough, so that only accumulators are scarce."""
WEIGHT_BANDWIDTH = 1e6
"""Bytes a second: a tile takes 16 cycles, as long as 16 rows."""
OMITTED = ("pack-patches",)
"""Passes that are left out: with this one, the host would put the rows of a convolution with a stride side by side."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model's source, the rows of the machine's accumulators, and the bits of its values."""

    source: str
    accumulators: int
    bits: int = 8

    def compiled(self, stages: Stages) -> api.Executable:
        """The model for the 4×4 machine with other accumulators."""
        numbers = {"accumulator_rows": self.accumulators, "unified_buffer_rows": BUFFER_ROWS, "weight_bandwidth": WEIGHT_BANDWIDTH}
        return api.compile_source(self.source, target="tiny", overrides=numbers, stages=stages, activation_bits=self.bits, omit=OMITTED)


@recorded
def built_in_cycles(model: Model) -> dict[str, int]:
    """What a model's cycles are spent on with tpucc's own lowering, which knows no rules of a term: the rows of the accounting."""
    return spent(model.compiled(Stages()).runtime)


def fc(rules: Rules, rows: int, deep: int, wide: int, bits: int = 8) -> Model:
    """`rows` rows times `deep` × `wide` weights, with a bias and a ReLU."""
    return Model(_source("fc", rows=rows, deep=deep, wide=wide, seed=rows + 100 * deep + wide), rules.accumulators, bits)


def conv(rules: Rules, shape: tuple[int, int, int, int], filters: int, size: int, stride: int = 1, padding: str = "same") -> Model:
    """A convolution of images (how many, lines, columns, channels) with a kernel of `size` × `size`, and a ReLU."""
    images, lines, columns, channels = shape
    seed = lines + 10 * columns + 100 * channels + filters
    of_images = {"images": images, "lines": lines, "columns": columns, "channels": channels}
    source = _source("conv", **of_images, filters=filters, size=size, stride=stride, padding=padding, seed=seed)
    return Model(source, rules.accumulators)


def with_zeros(rules: Rules, rows: int) -> Model:
    """Weights with tiles of nothing but zeros, at the begin and at the end of sums."""
    return Model(_source("zeros", rows=rows), rules.accumulators)


def _source(name: str, **words: object) -> str:
    return filled(Path(__file__).with_name(f"{name}.tpu").read_text("utf-8"), words)


def ragged(draw: Random, rules: Rules) -> Iterator[Model]:
    """Fully connected layers whose sizes are no multiples of 4."""
    for rows in (draw.randrange(2, 12), rules.accumulators + draw.randrange(3, 9)):
        yield fc(rules, rows, 4 * draw.randrange(2, 4) + draw.randrange(1, 4), 4 * draw.randrange(1, 3) + draw.randrange(1, 4))


def square(draw: Random, rules: Rules) -> Model:
    """As many blocks of rows as of columns: a tile that is taken for another one is there too."""
    blocks = draw.randrange(2, 4)
    return fc(rules, draw.randrange(3, 9), 4 * blocks, 4 * blocks)


def convolutions(draw: Random, rules: Rules) -> Iterator[Model]:
    """Two images with a stride, and one whose lines are as long as the accumulators or longer."""
    yield conv(rules, (2, draw.randrange(6, 9), draw.randrange(5, 9), draw.randrange(4, 8)), 3, 3, stride=2)
    yield conv(rules, (1, 3, rules.accumulators + draw.randrange(2, 8), 2), draw.randrange(5, 8), 2, padding="valid")
