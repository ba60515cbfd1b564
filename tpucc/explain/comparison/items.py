"""Two batches of different sizes: what an item of each costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tpucc.explain.comparison.pairs import Pair, Seconds
from tpucc.runtime.batches import model_batch
from tpucc.runtime.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Items:
    """Two batches of different sizes: their items; the time of an item from end to end, of a batch alone and of one in a stream; and its
    cycles in both.

    `throughput`, `streamed` and `latency` are the side that is better from end to end, "a" or "b", empty where both are alike: the one that
    takes less time for an item, the same in a stream, and the one whose batch is done sooner.
    """

    batch: Pair
    seconds: Seconds
    stream_seconds: Seconds
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

    def part(key: str) -> Callable[[Runtime], Mapping[str, Any]]:
        return lambda side: side.stats[key]

    whole = part("end_to_end")
    alone, streamed, batches = (
        Seconds(*each("seconds", whole)),
        Seconds(*each("stream_seconds", whole)),
        Seconds(*(side.stats["end_to_end"]["seconds"] for side in sides)),
    )
    better = map(_less, (alone, streamed, batches))
    return Items(Pair(a, b), alone, streamed, each("cycles"), each("cycles", part("stream")), *better)


def _less(seconds: Seconds) -> str:
    """The side that takes less; empty where they are equal."""
    return "" if not seconds.difference else "b" if seconds.difference < 0 else "a"


def item_words(items: Items, said: tuple[str, str]) -> str:
    """Both batches, the time and the cycles of an item of each, and what each is better for."""
    names = dict(zip("ab", said, strict=True))
    times = f"an item takes {items.seconds.words} from end to end; {_each(items.cycles)}"
    parts = [f"The batch is {items.batch.b:,} instead of {items.batch.a:,}: {times}."]
    if items.throughput and items.throughput == items.latency:
        parts.append(f"{_begun(names[items.throughput])} is better for throughput and for latency.")
    elif items.throughput and items.latency:
        parts.append(f"{_begun(names[items.throughput])} is better for throughput, {names[items.latency]} for latency.")
    if items.streamed and items.streamed != items.throughput:
        parts.append(f"In a stream of batches {names[items.streamed]} is better for throughput: {items.stream_seconds.words} for an item.")
    return " ".join(parts)


def _begun(name: str) -> str:
    """A name at the beginning of a sentence."""
    return f"{name[0].upper()}{name[1:]}"


def _each(cycles: tuple[float, float]) -> str:
    return f"{cycles[1]:,.1f} cycles an item instead of {cycles[0]:,.1f}"
