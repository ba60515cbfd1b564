"""A timed program in a few sentences and numbers: what a report, a notebook and the terminal say first. All come from `stats.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpucc.diagnostics import counted, listed, printable
from tpucc.explain.accounting import ROWS, cycles_by_row
from tpucc.explain.attribution import INPUT
from tpucc.explain.critical import Limit, path_words
from tpucc.explain.end_to_end import PARTS
from tpucc.explain.names import MOST_NAMES, first_names
from tpucc.explain.quality import Accuracy
from tpucc.explain.quantities import layer_rate, rate_text, size
from tpucc.explain.retiming import SPEEDS, Retimed
from tpucc.explain.terms import AT_ONCE
from tpucc.isa.program import HOST
from tpucc.prose import percent
from tpucc.sim.durations import duration
from tpucc.target import machine_name

Stats = Mapping[str, Any]
"""The dictionary of `stats.json`, or one of a layer in it."""


def machine_of(stats: Stats) -> str:
    """The target, and how many cores it has if they are several."""
    return machine_name(stats["target"], stats["cores"])


def share(part: float) -> str:
    """`98.3 %`, to a tenth, as accuracies are compared."""
    return f"{100 * part:.1f} %"


def answers(stats: Stats, found: Sequence[Retimed], accuracy: Accuracy | None = None) -> Iterator[tuple[str, str]]:
    """What a reader asks first, in a word, and the answer: how long a batch takes, why, what to try, and how many rows are right. `found`
    are the numbers of the machine that make a batch faster, each twice as good, the best first. What the user of a machine can do comes
    before another machine."""
    whole = stats["end_to_end"]
    yield (
        "time",
        as_sentences(f"{duration(whole['seconds'])} from inputs to outputs, {counted(stats['cycles'], 'cycle')} of that on the device"),
    )
    is_other = whole["bottleneck"] != stats["bottleneck"]
    device = stats["explanation"].removesuffix(f"; {stats['advice']}")
    device = f"of the device: {device}" if is_other and stats["cycles"] else device
    ends = whole["explanation"].removesuffix(f"; {whole['advice']}") if is_other else ""
    yield "why", as_sentences(f"bottleneck: {whole['bottleneck']}", ends, device)
    machine = [f"{SPEEDS[best.field].doubled}: the same program {_gain(best, whole['seconds'])}" for best in found[:1]]
    advice = [text for text in (whole["advice"] if is_other else "", stats["advice"]) if text]
    settings = [text for text in advice if text.startswith("--set ")]
    for word, text in zip(("try", "or"), [text for text in advice if text not in settings] + machine + settings, strict=False):
        yield word, as_sentences(text)
    if accuracy is not None:
        rows = counted(accuracy.rows, "held-out row")
        yield "accuracy", as_sentences(f"{share(accuracy.quantised)} of {rows}; in float32 {share(accuracy.float32)}")


def _gain(found: Retimed, seconds: float) -> str:
    return f"takes {duration(found.seconds)}, {percent(seconds - found.seconds, seconds)} less"


def peak_words(stats: Stats) -> tuple[str, str]:
    """How much of the array's peak does the model's work, and where the others go: a title and a sentence."""
    rows = cycles_by_row(stats)
    waited, active = stats["cycles"] - rows[Limit.MATRIX_UNIT], rows[Limit.MATRIX_UNIT]
    *_, root = waiting_cells(stats)
    said = [f"on the device the array waits in {percent(waited, stats['cycles'])} of the time, mostly for {root}"] if waited else []
    said += [f"while it multiplies, {useful_cells(stats)} of its cells hold weights of the model"] if active else ["it never multiplies"]
    return f"{percent(stats['useful_share'], 1)} of the array's peak does the model's work", "; ".join(said)


def useful_cells(stats: Stats) -> str:
    """How many of the array's cells hold weights of the model while it multiplies: `0.2 %`."""
    return percent(stats["useful_share"] * stats["cycles"], cycles_by_row(stats)[Limit.MATRIX_UNIT])


def as_sentences(*parts: str) -> str:
    """The parts that aren't empty, each with a capital letter and a full stop."""
    return printable(" ".join(f"{part[0].upper()}{part[1:].rstrip('.')}." for part in parts if part))


def facts(stats: Stats) -> Iterator[tuple[str, str, str]]:
    """Name, value, and a remark, of each of the model's numbers."""
    whose, whole = "the target's" if stats["cores"] == 1 else "the cores'", stats["end_to_end"]
    parts = ", ".join(f"{name} {duration(seconds)}" for name, seconds in end_to_end_parts(stats) if seconds)
    yield "end to end", duration(whole["seconds"]), parts
    yield "device", f"{stats['cycles']:,} cycles", duration(stats["seconds"])
    yield "speed", rate_text(1e12 * stats["tops"]), f"{percent(stats['utilization'], 1)} of {whose} peak"
    yield "bottleneck", whole["bottleneck"], f"of the device's critical path, %: {path_words(stats['critical_path'], 2)}"
    if stats["stream"]["cycles"]:
        yield "in a stream", duration(whole["stream_seconds"]), _streamed(stats)
    more = f"; {stats['host_macs']:,} more on the host" if stats["host_macs"] else ""
    yield "work", f"{stats['macs']:,}", f"multiply-accumulates{more}"
    yield "instructions", f"{stats['instructions']:,}", count_layers(stats["layers"])
    written = f"; the host writes {stats['written_tiles']:,} of them" if stats["written_tiles"] else ""
    fetched = f"{counted(stats['tile_fetches'], 'fetch', 'fetches')}{written}"
    yield "weight tiles", f"{stats['tiles']:,} distinct", f"{size(stats['weight_bytes'])} with padding; {fetched}"
    yield "unified buffer", size(stats["ub_peak_bytes"]), f"at the peak; {AT_ONCE} {size(stats['ub_lower_bound_bytes'])}"
    yield "host transfers", f"{size(stats['host_bytes']['in'])} in", f"{size(stats['host_bytes']['out'])} out"


def _streamed(stats: Stats) -> str:
    stream, limit = stats["stream"], stats["end_to_end"]["stream_bottleneck"]
    words = f"for each batch; {stream['cycles']:,} cycles of the device; bottleneck: {limit}"
    return words if stream["fits"] else f"{words}; the unified buffer has no room for two"


def rows_of_layers(layers: Sequence[Stats]) -> list[int]:
    """The places of those that have a row in tables: the work on inputs first, then the layers that have instructions of their own."""
    return sorted((place for place, layer in enumerate(layers) if layer["instructions"]), key=lambda place: layers[place]["kind"] != INPUT)


def count_layers(layers: Sequence[Stats], more: str = "") -> str:
    """`11 layers and 4 host steps`; of steps alone, `4 host steps`."""
    kinds = [layer["kind"] for layer in layers if layer["kind"] != INPUT]
    steps = kinds.count(HOST)
    parts = (len(kinds) - steps, "layer"), (steps, "host step")
    return " and ".join(counted(number, f"{more}{noun}") for number, noun in parts if number) or "0 layers"


def layer_cells(layer: Stats, whole: int) -> tuple[str, ...]:
    """The cells of a layer in tables: cycles, their percentage of `whole`, tiles, speed in TOPS, and the cells of `waiting_cells`."""
    speed = layer_rate(layer["tops"], layer["macs"])
    return (f"{layer['cycles']:,}", tenths(layer["cycles"], whole), f"{layer['tiles']:,}", speed, *waiting_cells(layer))


def waiting_cells(layer: Stats) -> tuple[str, str, str]:
    """The percentages in which the array is active and in which it waits, and the root of most of the waiting."""
    active, *waits = cycles_by_row(layer).items()
    root, most = max(waits, key=lambda wait: wait[1])
    waited = sum(cycles for _, cycles in waits)
    return tenths(active[1], layer["cycles"]), tenths(waited, layer["cycles"]), ROWS[root].root if most else "–"


def tenths(cycles: int, whole: int) -> str:
    """The percentage to a tenth."""
    return f"{100 * cycles / max(1, whole):.1f}"


def end_to_end_parts(stats: Stats) -> list[tuple[str, float]]:
    """The parts of the time from end to end in their order, by their names in tables, in seconds."""
    return [(name, stats["end_to_end"][part]) for part, name in PARTS.items()]


def host_words(stats: Stats) -> str:
    """What the host computes that no cycles count, in one sentence; empty where it is nothing."""
    whens = (" before the device starts", " after the device has finished") if stats["cycles"] else ("", "")
    parts = zip((stats["untimed"]["before"], stats["untimed"]["after"]), whens, strict=True)
    found = [f"{_operators(part)}{when}" for part, when in parts if part["operators"]]
    return f"No cycles count what the host computes: {' and '.join(found)}" if found else ""


def _operators(part: Stats) -> str:
    """`conv2d, relu (lines 12 and 13; 14,400 multiply-accumulates)`."""
    lines, macs = part["lines"], part["macs"]
    more = [f"{len(lines) - MOST_NAMES:,} more"] if len(lines) > MOST_NAMES else []
    where = [f"line{'s' if len(lines) > 1 else ''} {listed([*map(str, lines[:MOST_NAMES]), *more])}"] if lines else []
    about = "; ".join([*where, *([counted(macs, "multiply-accumulate")] if macs else [])])
    return first_names(part["operators"]) + (f" ({about})" if about else "")


Layers = Sequence[Mapping[str, Any]]


def by_lines(layers: Layers) -> list[dict[str, Any]]:
    """The layers of `stats.json` added up by their `line`, in the order of the lines' first layers.

    Of each line: `line`, how many `layers` it has, the `name` of the layer with the most cycles; the sums of `cycles`, `macs`,
    `tile_fetches` and `instructions` and `waits_by_root`; and `tops` and `breakdown` of them together.
    """
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for layer in layers:
        groups.setdefault(layer["line"], []).append(layer)
    return [_together(line, group) for line, group in groups.items()]


def _together(line: int, layers: Layers) -> dict[str, Any]:
    largest = max(layers, key=lambda layer: int(layer["cycles"]))
    cycles = sum(layer["cycles"] for layer in layers)
    keys = ("macs", "tile_fetches", "instructions")
    return {
        "line": line,
        "layers": len(layers),
        "name": largest["name"],
        "cycles": cycles,
        **{key: sum(layer[key] for layer in layers) for key in keys},
        "tops": sum(layer["tops"] * layer["cycles"] for layer in layers) / max(1, cycles),
        "waits_by_root": {root: sum(layer["waits_by_root"][root] for layer in layers) for root in largest["waits_by_root"]},
        "breakdown": {
            key: sum(layer["breakdown"][key] * layer["cycles"] for layer in layers) / max(1, cycles) for key in largest["breakdown"]
        },
    }
