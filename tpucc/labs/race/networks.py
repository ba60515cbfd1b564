"""Small networks, drawn with the waste of a term in them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tpucc.labs.lab import filled

_DECLARED = tomllib.loads(Path(__file__).with_name("networks.toml").read_text("utf-8"))
MXU = 8
WASTES: Mapping[str, str] = _DECLARED["wastes"]
FAMILIES: Mapping[str, Mapping[str, Any]] = _DECLARED["families"]
SHARED = "twice"
"""The waste that is in the network as a whole: a layer is written down twice."""


@dataclass(frozen=True, slots=True)
class Network:
    """A model's source text, and what it is called."""

    name: str
    text: str


def race(draw: Random, wastes: Sequence[str]) -> Iterator[Network]:
    """A network of each family."""
    return (_drawn(draw, name, wastes) for name in FAMILIES)


def first(wastes: Sequence[str]) -> Network:
    """The first network of the handout, the same in every term but for its waste."""
    return _drawn(Random(1), "dense", wastes)


def edges(draw: Random, accumulators: int) -> Iterator[Network]:
    """Networks without waste, whose sizes are those of the machine: one row, whole tiles, more rows than there are accumulators."""
    sizes = [(1, MXU, 2 * MXU), (accumulators + draw.randint(1, 7), 2 * MXU + 1, MXU)]
    for rows, inner, units in sizes:
        text = f'model edge(x: f32[{rows}, {inner}] in [-1.0, 1.0]):\n    return dense(relu(dense(x, {units}, "h")), 1, "out")\n'
        yield _network(draw, f"{rows} rows of {inner}", text)
    side = draw.randint(4, 5)
    text = f'model edge(x: f32[2, {side}, 3, {MXU}] in [-1.0, 1.0]):\n    return relu(conv(x, {MXU}, "h"))\n'
    yield _network(draw, f"2 images of {side} × 3", text)


def _drawn(draw: Random, name: str, wastes: Sequence[str]) -> Network:
    """A network of a family."""
    sizes = {size: draw.randint(*bounds) for size, bounds in FAMILIES[name]["sizes"].items()}
    own = [waste for waste in wastes if waste != SHARED]

    def wasted(match: re.Match[str]) -> str:
        value = match[1]
        for waste in draw.sample(own, len(own)):
            value = f"{waste}({value})"
        return value

    text = filled(FAMILIES[name]["text"], sizes)
    return _network(draw, name, re.sub(r"\bwasted\((.*)\)$", wasted, text, flags=re.MULTILINE))


def _network(draw: Random, name: str, text: str) -> Network:
    wastes = "".join(f"def {waste}(x):\n    return {body}\n\n" for waste, body in WASTES.items() if f"{waste}(" in text)
    return Network(name, f"{filled(_DECLARED['head'], {'seed': draw.randrange(1000)})}{wastes}{text}")
