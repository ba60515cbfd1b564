"""Two batches of different sizes: what an item of each costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tpucc.runtime.batches import model_batch
from tpucc.runtime.comparison.pairs import Pair
from tpucc.runtime.runtime import Runtime
from tpucc.values import dataclass


@dataclass(frozen=True, slots=True)
class Items:
    """Two batches of different sizes: their items, and the cycles of each, of a batch alone and of one in a stream of batches.

    `throughput`, `streamed` and `latency` are the side that is better, "a" or "b", empty where both are alike: the one that takes less time
    for an item, the same in a stream, and the one whose batch is done sooner.
    """

    batch: Pair
    cycles: tuple[float, float]
    stream: tuple[float, float]
    throughput: str
    streamed: str
    latency: str


def items_of(sides: tuple[Runtime, Runtime]) -> Items | None:
    """Where the batches differ. A program without a host's part has no batch."""
    if not all(side.program.prologue for side in sides):
        return None
    a, b = (model_batch(side.inputs, list(side.outputs.values())) for side in sides)
    if not a or not b or a == b:
        return None

    def each(number: str, of: Callable[[Runtime], Mapping[str, Any]] = lambda side: side.stats) -> tuple[float, float]:
        return of(sides[0])[number] / a, of(sides[1])[number] / b

    def streamed(side: Runtime) -> Mapping[str, Any]:
        found: Mapping[str, Any] = side.stats["stream"]
        return found

    better = (_less(*each("seconds")), _less(*each("seconds", streamed)), _less(*(side.stats["seconds"] for side in sides)))
    return Items(Pair(a, b), each("cycles"), each("cycles", streamed), *better)


def _less(a: float, b: float) -> str:
    """The side with the smaller number; empty where they are equal."""
    return "" if a == b else "a" if a < b else "b"


def item_words(items: Items, said: tuple[str, str]) -> str:
    """Both batches, the cycles of an item of each, and what each is better for."""
    names = dict(zip("ab", said, strict=True))
    parts = [f"The batch is {items.batch.b:,} instead of {items.batch.a:,}: {_each(items.cycles)}."]
    if items.throughput and items.throughput == items.latency:
        parts.append(f"{_begun(names[items.throughput])} is better for throughput and for latency.")
    elif items.throughput and items.latency:
        parts.append(f"{_begun(names[items.throughput])} is better for throughput, {names[items.latency]} for latency.")
    if items.streamed and items.streamed != items.throughput:
        parts.append(f"In a stream of batches {names[items.streamed]} is better for throughput: {_each(items.stream)}.")
    return " ".join(parts)


def _begun(name: str) -> str:
    """A name at the beginning of a sentence."""
    return f"{name[0].upper()}{name[1:]}"


def _each(cycles: tuple[float, float]) -> str:
    return f"{cycles[1]:,.1f} cycles an item instead of {cycles[0]:,.1f}"
