"""Both sides of a comparison, numbers of both, and the rows of the accounting as such pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tpucc.explain.accounting import ROWS, cycles_by_row
from tpucc.explain.critical import Limit
from tpucc.explain.timed import Timed
from tpucc.sim.durations import duration, durations

T = TypeVar("T")

ONE_UNIT = 100
"""Two times of which one is so many times the other are told in one unit."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A number of both sides."""

    a: int
    b: int

    @property
    def difference(self) -> int:
        """How much larger the number of b is."""
        return self.b - self.a


@dataclass(frozen=True, slots=True)
class Seconds:
    """A time of both sides."""

    a: float
    b: float

    @property
    def difference(self) -> float:
        """How much longer b takes, to a picosecond: what is less comes of rounding."""
        return round(self.b - self.a, 12)

    @property
    def times(self) -> float:
        """How many times as long b takes."""
        return self.b / self.a if self.a else 1.0

    @property
    def texts(self) -> tuple[str, str]:
        """Both in one unit, `131.6 µs` and `147.9 µs`, unless one is so short beside the other that nothing would be left of it."""
        if 0 < ONE_UNIT * min(self.a, self.b) < max(self.a, self.b):
            return duration(self.a), duration(self.b)
        a, b = durations([self.a, self.b])
        return a, b

    @property
    def words(self) -> str:
        """`147.9 µs instead of 131.6 µs`."""
        a, b = self.texts
        return f"{b} instead of {a}"

    @property
    def change(self) -> str:
        """The difference with its sign: `+16.4 µs`; empty where there is none."""
        return f"{'-' if self.difference < 0 else '+'}{duration(abs(self.difference))}" if self.difference else ""

    @property
    def share(self) -> str:
        """The difference in percent of a: `+12.4 %`."""
        return f"{100 * (self.times - 1):+,.1f} %"

    def takes(self, said: tuple[str, str], how: str = "") -> str:
        """`B takes 16.4 µs more than A from end to end (147.9 µs instead of 131.6 µs, +12.4 %)`, or `both take 131.6 µs`."""
        if not self.difference:
            return f"both take {self.texts[0]}{how}"
        way = "more" if self.difference > 0 else "less"
        numbers = f"{self.words}, {self.share}" if self.a else self.words
        return f"{said[1]} takes {self.change[1:]} {way} than {said[0]}{how} ({numbers})"


@dataclass(frozen=True, eq=False, slots=True)
class Sides:
    """Two programs, and what sentences call them."""

    a: Timed
    b: Timed
    said: tuple[str, str]

    def __iter__(self) -> Iterator[Timed]:
        return iter((self.a, self.b))

    def each(self, of: Callable[[Timed], T]) -> tuple[T, T]:
        """Something of both."""
        return of(self.a), of(self.b)

    def pair(self, count: Callable[[Timed], int]) -> Pair:
        """A number of both."""
        return Pair(int(count(self.a)), int(count(self.b)))

    def seconds(self, part: str) -> Seconds:
        """A time of both from end to end, by its key in `stats.json`."""
        return Seconds(*self.each(lambda side: side.stats["end_to_end"][part]))


def together(pairs: Iterable[Pair]) -> Pair:
    """The sum of both sides."""
    counted = list(pairs)
    return Pair(sum(pair.a for pair in counted), sum(pair.b for pair in counted))


def spent(runtime: Timed) -> dict[str, int]:
    """The cycles of each row of the accounting, by the words of its limit."""
    return {limit.value: cycles for limit, cycles in cycles_by_row(runtime.stats).items()}


def paired(a: Mapping[str, int], b: Mapping[str, int]) -> dict[Limit, Pair]:
    return {limit: Pair(a[limit], b[limit]) for limit in ROWS}


def begun(words: str) -> str:
    """Words at the beginning of a sentence."""
    return f"{words[0].upper()}{words[1:]}"


def more(change: int, what: str = "") -> str:
    return f"{abs(change):,} {f'{what} ' if what else ''}{'more' if change > 0 else 'fewer'}"


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
