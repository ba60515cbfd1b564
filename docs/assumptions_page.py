"""The page of assumptions: the source of each number of each target, what the assumed ones move, and what passes move to the host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from measure import compiled, host_share, named
from paper_page import table

from tpucc.explain.retiming import retimed
from tpucc.explain.timed import FACTORS, Assumption, Timed, assumptions
from tpucc.options import Options
from tpucc.sim.durations import duration
from tpucc.target import target_names

TARGETS = Path(__file__).resolve().parents[1] / "tpucc" / "targets"
NUMBER = re.compile(r"^(?P<field>\w+) = (?P<value>[\d.e-]+) +# (?P<kind>published|inferred|assumed): (?P<words>.+)$", re.MULTILINE)
"""A number in a target's file, with its source."""
MOVED: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("02_iris", {}),
    ("04_digits_mlp", {}),
    ("05_digits_cnn", {}),
    ("06_digits_lstm", {}),
    ("11_resnet50", {}),
)
"""Programs whose assumptions are varied, with the params that aren't their defaults."""
HOSTED = (*MOVED[1:], ("11_resnet50", {"batch": "8"}), ("gallery/gpt2_block", {}))
"""Programs that are compiled in each of `WAYS`."""
WAYS: Mapping[str, Mapping[str, Any]] = {
    "all passes": {},
    "`--for stream`": {"goal": "stream"},
    "`--omit pack-patches`": {"omit": frozenset({"pack-patches"})},
    "`--write-weights-computed-products host`": {"settings": {"write-weights": {"computed_products": "host"}}},
    "`--write-weights-computed-products device`": {"settings": {"write-weights": {"computed_products": "device"}}},
}
MEASURED = "## What the assumptions move\n"
"""The first heading of what is measured."""


@dataclass(frozen=True)
class Number:
    """A number of a target, as its file has it; `kind` is published, inferred or assumed, and `words` are where it comes from."""

    field: str
    value: str
    kind: str
    words: str


def numbers(target: str) -> list[Number]:
    """Those in the file of a target."""
    return [Number(**found.groupdict()) for found in NUMBER.finditer((TARGETS / f"{target}.toml").read_text("utf-8"))]


def assumptions_page() -> str:
    return "\n".join([*_sources(), *_moved(), *_hosted()]) + "\n"


def with_sources(page: str) -> str:
    """The page with its beginning as the targets' files have it. Nothing is compiled: what is measured stays."""
    return "\n".join([*_sources(), MEASURED]) + page.partition(MEASURED)[2]


def _sources() -> Iterator[str]:
    yield "# What is published, what is assumed, what it moves\n"
    yield (
        "Each number of a machine (*target*) is one of three kinds. *Published*: a source says it. *Inferred*: it follows from what a "
        "source says. *Assumed*: no source has it, and we chose it. Times that are computed from assumed numbers are assumptions, too.\n"
    )
    yield "## Each number and its source\n"
    yield (
        "From the comments of the targets' files. Sections, tables and figures without a name are those of Jouppi et al., "
        "“In-Datacenter Performance Analysis of a Tensor Processing Unit”, ISCA 2017; *CACM 2020* is Jouppi et al., “A Domain-Specific "
        "Supercomputer for Training Deep Neural Networks”; *ISCA 2021* is Jouppi et al., “Ten Lessons From Three Generations Shaped "
        "Google’s TPUv4i”. [The machine](../machine.md) says what the numbers are for.\n"
    )
    for name in target_names():
        yield f"### {name}\n"
        yield from table(("number", "value", "kind", "where it comes from"), [_number(each) for each in numbers(name)])


def _number(number: Number) -> tuple[str, ...]:
    return f"`{number.field}`", number.value, number.kind, number.words


def _moved() -> Iterator[str]:
    yield MEASURED
    yield (
        "The time of a batch from end to end on `tpu_v1`, with one of its assumed numbers halved and doubled. The program stays the same, "
        "and is timed again. A compiler that knew the other number might choose another program. Of each program the first row is the "
        "assumption that moves its time the most. *Bottleneck* is the limit that takes most of the time, and says where it becomes "
        "another one. `tpucc profile MODEL.tpu` ends with the first row of your model; `--json` has all.\n"
    )
    yield from table(
        ("program", "assumption", "value", "end to end", "halved", "", "doubled", "", "bottleneck"),
        [row for name, params in MOVED for row in _moved_rows(name, params)],
    )


def _moved_rows(name: str, params: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    runtime = _runtime(name, tuple(params.items()), "all passes")
    values = {number.field: number.value for number in numbers(runtime.program.target.name)}
    for each in assumptions(runtime):
        times = [cell for seconds in (each.halved, each.doubled) for cell in (duration(seconds), _more(seconds, each.seconds))]
        cells = (named(name, params), f"`{each.field}`", values[each.field], duration(each.seconds), *times)
        yield (*cells, _bottlenecks(runtime, each))


def _bottlenecks(runtime: Timed, assumption: Assumption) -> str:
    """What limits the program, and what does with half and with twice of the number, where that is another limit."""
    whole = runtime.stats["end_to_end"]["bottleneck"]
    words = [whole]
    for factor, times in zip(FACTORS, ("halved", "doubled"), strict=True):
        varied = retimed(runtime.program, runtime.edges, assumption.field, factor).bottleneck
        words += [f"{times}: {varied}"] if varied != whole else []
    return "; ".join(words)


def _hosted() -> Iterator[str]:
    yield "## What passes move to the host\n"
    yield (
        "Two passes decide what the host computes. `pack-patches` lets it write the windows of an image side by side "
        "([few channels](../networks.md#few-channels)). `write-weights` lets it write one side of a product of two computed values to "
        "weight memory, and leaves the product to the host otherwise ([attention](../networks.md#attention)). Both count the host's time "
        "by the assumed price. `pack-patches` packs only where the batch is done sooner by its estimate, or, with `--for stream`, where "
        "each batch of a stream takes less. `write-weights` leaves the host's float32 only where that takes at least twice as long.\n"
    )
    yield (
        "An estimate can be wrong. Here it isn't: no program takes longer from end to end than without `pack-patches`, or than "
        "with all such products on the host; and with `--for stream` none takes longer in a stream. Tests hold that for "
        "small networks of other sizes.\n"
    )
    yield (
        "*Cycles* are those of the device and its link. *Host* is the host's share of the time from end to end, before and after the "
        "device. The percentages compare with all passes. `write-weights` has a choice in the transformer only. *The same* is the program "
        "of all passes.\n"
    )
    head = ("program", "compiled with", "cycles", "end to end", "", "host", "each in a stream", "")
    yield from table(head, [row for name, params in HOSTED for row in _hosted_rows(name, params)])


def _hosted_rows(name: str, params: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    given = tuple(params.items())
    base = _runtime(name, given, "all passes")
    seconds, stream = (base.stats["end_to_end"][key] for key in ("seconds", "stream_seconds"))
    for way in WAYS:
        if "write-weights" in way and name != "gallery/gpt2_block":
            continue
        stats = _runtime(name, given, way).stats
        whole = stats["end_to_end"]
        if way != "all passes" and (stats["cycles"], whole) == (base.stats["cycles"], base.stats["end_to_end"]):
            yield (named(name, params), way, "the same", *[""] * 5)
            continue
        more = ("", "") if way == "all passes" else (_more(whole["seconds"], seconds), _more(whole["stream_seconds"], stream))
        times = (duration(whole["seconds"]), more[0], host_share(whole), duration(whole["stream_seconds"]), more[1])
        yield (named(name, params), way, f"{stats['cycles']:,}", *times)


def _more(seconds: float, whole: float) -> str:
    return f"{100 * (seconds - whole) / whole:+.1f} %"


@cache
def _runtime(name: str, given: tuple[tuple[str, str], ...], way: str) -> Timed:
    program = compiled(name, Options(params=dict(given), **WAYS[way])).program
    assert program is not None
    return Timed(program)
