"""The numbers that the report shows: the part of `stats.json` that it needs, with types."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tpucc.diagnostics import counted, listed
from tpucc.explain.end_to_end import PARTS
from tpucc.target import machine_name
from tpucc.viz.text import MOST_NAMES, first_names


class Breakdown(msgspec.Struct, frozen=True):
    """Percentages of cycles, as `stats.json` defines them."""

    array_active: float = 0.0
    weight_stall: float = 0.0
    weight_shift: float = 0.0
    raw_stall: float = 0.0
    input_stall: float = 0.0
    activation: float = 0.0
    host_step: float = 0.0
    output: float = 0.0
    input: float = 0.0
    idle: float = 0.0


class LayerStatistics(msgspec.Struct, frozen=True):
    name: str
    kind: str
    line: int = 0
    cycles: int = 0
    tiles: int = 0
    tops: float = 0.0
    macs: int = 0
    operators: list[str] = []
    breakdown: Breakdown = Breakdown()


class Stream(msgspec.Struct, frozen=True):
    """Each batch of many, one after the other; `fits` is false where the unified buffer has no room for it."""

    cycles: int = 0
    seconds: float = 0.0
    bottleneck: str = ""
    fits: bool = True


class HostPart(msgspec.Struct, frozen=True):
    """What the host computes before the device starts, or after it has finished: no cycles count it, `EndToEnd` does."""

    operators: list[str] = []
    lines: list[int] = []
    macs: int = 0
    elements: int = 0


class Untimed(msgspec.Struct, frozen=True):
    before: HostPart = HostPart()
    after: HostPart = HostPart()


class EndToEnd(msgspec.Struct, frozen=True):
    """Seconds from the model's inputs to its outputs, and their parts; `stream_seconds` of a batch among others."""

    seconds: float = 0.0
    host_before: float = 0.0
    link_in: float = 0.0
    device: float = 0.0
    link_out: float = 0.0
    host_after: float = 0.0
    stream_seconds: float = 0.0
    bottleneck: str = ""
    stream_bottleneck: str = ""
    explanation: str = ""

    @property
    def parts(self) -> list[tuple[str, float]]:
        """The parts in their order, by their names in tables."""
        return [(name, getattr(self, part)) for part, name in PARTS.items()]


def _operators(part: HostPart) -> str:
    """`conv2d, relu (lines 12 and 13; 14,400 multiply-accumulates)`."""
    numbers = [*map(str, part.lines[:MOST_NAMES]), *([f"{len(part.lines) - MOST_NAMES:,} more"] if len(part.lines) > MOST_NAMES else [])]
    lines = [f"line{'s' if len(part.lines) > 1 else ''} {listed(numbers)}"] if part.lines else []
    about = "; ".join([*lines, *([counted(part.macs, "multiply-accumulate")] if part.macs else [])])
    return first_names(part.operators) + (f" ({about})" if about else "")


class Statistics(msgspec.Struct, frozen=True):
    model: str
    target: str
    cycles: int
    seconds: float
    macs: int
    tops: float
    utilization: float
    instructions: int
    tiles: int
    weight_bytes: int
    ub_peak_bytes: int
    ub_lower_bound_bytes: int
    host_bytes: dict[str, int]
    breakdown: Breakdown
    bottleneck: str
    layers: list[LayerStatistics]
    tpucc: str = ""
    critical_path: dict[str, float] = {}
    explanation: str = ""
    cores: int = 1
    tile_fetches: int = 0
    stream: Stream = Stream()
    host_macs: int = 0
    written_tiles: int = 0
    untimed: Untimed = Untimed()
    end_to_end: EndToEnd = EndToEnd()

    @property
    def machine(self) -> str:
        return machine_name(self.target, self.cores)

    @property
    def host_words(self) -> str:
        """What the host computes that no cycles count, in one sentence; empty where it is nothing."""
        whens = (" before the device starts", " after the device has finished") if self.cycles else ("", "")
        parts = zip((self.untimed.before, self.untimed.after), whens, strict=True)
        found = [f"{_operators(part)}{when}" for part, when in parts if part.operators]
        return f"No cycles count what the host computes: {' and '.join(found)}" if found else ""


def read_statistics(stats: Mapping[str, object]) -> Statistics:
    """The numbers of a dictionary made for `stats.json`. Raises `msgspec.ValidationError` when it isn't one."""
    return msgspec.convert(dict(stats), Statistics)
