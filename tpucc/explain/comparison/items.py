"""Two batches of different sizes: what an item of each costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tpucc.explain.comparison.pairs import Pair, Seconds, Sides, begun


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


def items_of(sides: Sides) -> Items | None:
    """Where the batches differ. A program without a host's part has no batch."""
    if not all(side.program.prologue for side in sides):
        return None
    a, b = sides.each(lambda side: side.batch)
    if not a or not b or a == b:
        return None

    def each(of: Callable[[Mapping[str, Any]], float]) -> tuple[float, float]:
        return of(sides.a.stats) / a, of(sides.b.stats) / b

    alone, streamed = (
        Seconds(*(side.stats["end_to_end"][part] / batch for side, batch in ((sides.a, a), (sides.b, b))))
        for part in ("seconds", "stream_seconds")
    )
    better = map(_less, (alone, streamed, sides.seconds("seconds")))
    return Items(Pair(a, b), alone, streamed, each(lambda stats: stats["cycles"]), each(lambda stats: stats["stream"]["cycles"]), *better)


def _less(seconds: Seconds) -> str:
    """The side that takes less; empty where they are equal."""
    return "" if not seconds.difference else "b" if seconds.difference < 0 else "a"


def item_words(items: Items, said: tuple[str, str]) -> str:
    """Both batches, the time and the cycles of an item of each, and what each is better for."""
    names = dict(zip("ab", said, strict=True))
    a, b = items.cycles
    times = f"an item takes {items.seconds.words} from end to end; {b:,.1f} cycles an item instead of {a:,.1f}"
    parts = [f"The batch is {items.batch.b:,} instead of {items.batch.a:,}: {times}."]
    if items.throughput and items.throughput == items.latency:
        parts.append(f"{begun(names[items.throughput])} is better for throughput and for latency.")
    elif items.throughput and items.latency:
        parts.append(f"{begun(names[items.throughput])} is better for throughput, {names[items.latency]} for latency.")
    if items.streamed and items.streamed != items.throughput:
        parts.append(f"In a stream of batches {names[items.streamed]} is better for throughput: {items.stream_seconds.words} for an item.")
    return " ".join(parts)
