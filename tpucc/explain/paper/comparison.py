"""Our figures beside the paper's, section by section: the machine, tables 1, 3, 4, 7 and 8, figure 11, and TPU′.

The peak, the fetch of a tile, the ridge and section 7's 600×600 matrix follow from the machine alone. The other sections compile the
paper's applications, those of figure 11 again for each design.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tpucc.diagnostics import Source
from tpucc.explain.paper.applications import Measured, find_programs, known, measure, measure_file, seconds_on
from tpucc.explain.paper.figures import Figure, Section, with_reasons
from tpucc.explain.paper.published import Application, Matrix600, published, read_table
from tpucc.target import Target, load_target, with_overrides

_ONE_MATRIX = """weights random(seed=0)
model matrix(x: f32[{batch}, {size}] in [-1.0, 1.0]):
    weight w: f32[{size}, {size}]
    return x @ w
"""
_SUM_BYTES = 4
MIB = 2**20


class _Texts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    notes: tuple[str, ...] = ()


def _section(key: str, figures: Iterable[Figure], **words: object) -> Section:
    """A section with its title and its notes in `sections.toml`, in which `words` are put; a note of nothing is left out."""
    found = read_table("sections.toml", dict[str, _Texts])[key]
    return Section(key, found.title, tuple(figures), tuple(filter(None, (note.format(**words) for note in found.notes))))


def machine_section(target: Target) -> Section:
    """Peak, fetch, ridge and memories of `target` beside the paper's, and the ridge of TPU′."""
    paper, prime = published().machine, load_target("tpu_v1_prime")
    accumulators = target.accumulator_rows * target.mxu * _SUM_BYTES / MIB
    figures = (
        Figure("peak", "", "TOPS", paper.peak_tops, target.peak_ops / 1e12),
        Figure("fetch of a weight tile", "", "cycles", paper.tile_fetch_cycles, target.tile_fetch_cycles),
        Figure("ridge", "", "MACs/byte", paper.ridge_macs_per_byte, target.ridge_macs_per_byte),
        Figure("ridge of TPU′", "", "MACs/byte", paper.prime_ridge_macs_per_byte, prime.ridge_macs_per_byte),
        Figure("accumulators", "", "MiB", paper.accumulators_mib, accumulators),
        Figure("unified buffer", "", "MiB", paper.unified_buffer_mib, target.unified_buffer_rows * target.mxu / MIB),
    )
    return _section("machine", figures)


def matrix_section(target: Target) -> Section:
    """Section 7's example, compiled for `target` and for one with a unit twice as wide."""
    paper = published().matrix_600
    wider = next(variant.scale for variant in published().variants if variant.name == "matrix")
    machines = target, scaled(target, wider)
    narrow, wide = (_one_matrix(paper, machine) for machine in machines)
    small, large = (f"{machine.mxu}×{machine.mxu}" for machine in machines)
    parts = narrow.stats["breakdown"]
    fill = 100 * parts["useful_macs"] / parts["array_active"]
    figures = (
        Figure(f"{small}: steps", "", "tiles", paper.narrow_steps, narrow.stats["tile_fetches"]),
        Figure(f"{small}: fetching them", "", "µs", paper.narrow_microseconds, 1e6 * narrow.fetched),
        Figure(f"{small}: the whole layer", "", "µs", None, 1e6 * narrow.seconds),
        Figure(f"{small}: cells in use", "", "%", paper.fill_percent, fill),
        Figure(f"{large}: steps", "", "tiles", paper.wide_steps, wide.stats["tile_fetches"]),
        Figure(f"{large}: fetching them", "", "µs", paper.wide_microseconds, 1e6 * wide.fetched),
        Figure(f"{large}: the whole layer", "", "µs", None, 1e6 * wide.seconds),
    )
    return _section("matrix_600", figures)


def _one_matrix(paper: Matrix600, target: Target) -> Measured:
    text = _ONE_MATRIX.format(batch=paper.batch, size=paper.size)
    return measure(Source("matrix.tpu", text), Path(), target)


TABLE3: Mapping[str, str] = {
    "array_active": "1 array active",
    "useful_macs": "2  useful MACs",
    "unused_macs": "3  unused MACs",
    "weight_stall": "4 weight stall",
    "weight_shift": "5 weight shift",
    "non_matrix": "6 non-matrix",
    "raw_stall": "7  RAW stalls",
    "input_stall": "8  input stalls",
    "tops": "9 TOPS",
}
"""The rows of table 3 by the keys of `stats.json`."""
STREAM: Mapping[str, str] = {"tops": "9 TOPS", "input_stall": "8 input stalls"}
Base = Mapping[str, Measured]


def table3_section(base: Base) -> Section:
    """Where the cycles go, and the speed."""
    return _section("table_3", _table3(base, TABLE3))


def plain_section(plain: Base) -> Section:
    """Where the cycles go in programs that aren't optimised: what overlapping is worth, and what the paper's programs may have lacked."""
    return _section("table_3_plain", _table3(plain, TABLE3, only_known=True))


def stream_section(base: Base) -> Section:
    """Speed and input stalls in a stream of batches, where transfers cross while others compute."""
    return _section("stream", _table3(base, STREAM, lambda ours: ours.stats["stream"], only_known=True))


def table7_section(base: Base) -> Section:
    """The error of Google's model, and of ours."""
    figures = _across(base, "error in cycles", "%", lambda paper: paper.model_error, _cycle_error)
    return _section("table_7", figures)


def table8_section(base: Base) -> Section:
    """The unified buffer's highest use."""
    figures = _across(base, "unified buffer", "MiB", lambda paper: paper.buffer_mib, lambda ours, _: ours.stats["ub_peak_bytes"] / MIB)
    return _section("table_8", figures)


def roofline_section(base: Base, target: Target) -> Section:
    """Each application's point under the roof: intensity, the roof there, and how much of it is reached."""

    def roof(intensity: float, peak_tops: float) -> float:
        return min(peak_tops, 2 * intensity * target.weight_bandwidth / 1e12)

    def theirs(paper: Application) -> float:
        return roof(paper.macs_per_byte, target.peak_ops / 1e12)

    def ours(measured: Measured, _: Application) -> float:
        return roof(measured.stats["macs_per_weight_byte"], measured.stats["peak_tops"])

    def theirs_used(paper: Application) -> float:
        return 100 * paper.table3["tops"] / theirs(paper)

    def ours_used(measured: Measured, paper: Application) -> float:
        return 100 * float(measured.stats["tops"]) / ours(measured, paper)

    figures = [
        *_across(base, "intensity", "MACs/byte", lambda paper: paper.macs_per_byte, lambda ours, _: ours.stats["macs_per_weight_byte"]),
        *_across(base, "roof there", "TOPS", theirs, ours),
        *_across(base, "reached", "TOPS", lambda paper: paper.table3["tops"], lambda ours, _: ours.stats["tops"]),
        *_across(base, "share of the roof", "%", theirs_used, ours_used),
    ]
    return _section("roofline", figures, target=target, rate=f"{target.weight_bandwidth / 1e9:.4g}")


def inferences_section(base: Base) -> Section:
    """Inferences a second of MLP0, within 7 ms in the paper."""
    paper = published().inferences
    ours, application = base.get(paper.application), published().applications[paper.application]
    device = None if ours is None else ours.batch / ours.seconds
    whole = None if device is None else device / (1 + application.host_percent / 100)
    figures = (
        Figure("CPU (Haswell)", "", "1/s", paper.cpu, None),
        Figure("GPU (K80)", "", "1/s", paper.gpu, None),
        Figure("TPU", "", "1/s", paper.tpu, device),
        Figure(f"TPU, host {application.host_percent:.0f} % more", "", "1/s", paper.tpu, whole),
    )
    batch = "" if ours is None else f" Ours are batches of {ours.batch:,}, {1e3 * ours.seconds:.2f} ms each, one after the other."
    return _section("table_4", figures, batch=batch)


def _across(
    base: Base,
    row: str,
    unit: str,
    paper: Callable[[Application], float],
    ours: Callable[[Measured, Application], float],
    only_known: bool = False,
) -> Iterator[Figure]:
    """A row over all applications, or those whose shapes are known well enough (see `known`); ours is missing where there is no program."""
    for name, application in published().applications.items():
        if not (only_known and application.qualitative):
            yield Figure(row, name.upper(), unit, paper(application), ours(base[name], application) if name in base else None)


def _table3(
    base: Base,
    rows: Mapping[str, str],
    numbers: Callable[[Measured], Mapping[str, Any]] = lambda ours: ours.stats,
    only_known: bool = False,
) -> tuple[Figure, ...]:
    """Rows of table 3 by their keys; ours are of these numbers of each application. `only_known` as for `_across`."""

    def row(key: str) -> Iterator[Figure]:
        def ours(measured: Measured, _: Application) -> float:
            found = numbers(measured)
            return float(found["tops"] if key == "tops" else found["breakdown"][key])

        return _across(base, rows[key], "TOPS" if key == "tops" else "%", lambda paper: paper.table3[key], ours, only_known)

    return tuple(figure for key in rows for figure in row(key))


def _cycle_error(ours: Measured, paper: Application) -> float:
    return 100 * abs(paper.table3["tops"] / float(ours.stats["tops"]) - 1)


Progress = Callable[[str], None]
Speedups = Mapping[str, float]
"""Times as fast, by application."""


def scaled(target: Target, factors: Mapping[str, float]) -> Target:
    """`target` with some of its numbers multiplied."""
    return with_overrides(target, {field: getattr(target, field) * factor for field, factor in factors.items()})


PRIME = "tpu_v1_prime"


def speedups(programs: Mapping[str, Path], base: Mapping[str, Measured], target: Target, progress: Progress) -> Mapping[str, Speedups]:
    """By the title of a design of figure 11, or `PRIME`: the applications whose shapes are known well enough, on it instead of on `target`,
    on which they take what `base` says."""
    designs = {variant.title: scaled(target, variant.scale) for variant in published().variants} | {PRIME: load_target(PRIME)}
    found: dict[str, dict[str, float]] = {title: {} for title in designs}
    for name, path in known(programs).items():
        progress(f"{path.name}, {len(designs)} designs")
        for title, seconds in zip(designs, seconds_on(path, list(designs.values())), strict=True):
            found[title][name] = base[name].seconds / seconds
    return found


def sensitivity_section(of_designs: Mapping[str, Speedups]) -> Section:
    """Each design of figure 11 against the target."""
    figures = []
    for variant in published().variants:
        for name, application in published().applications.items():
            about, ours = variant.about[application.kind], of_designs[variant.title].get(name)
            figures.append(Figure(variant.title, name.upper(), "×", about, ours, about=True))
    return _section("figure_11", figures)


def prime_section(of_prime: Speedups) -> Section:
    """TPU′ against TPU v1: each application, and the means over those that have a program."""
    paper = published().prime
    figures = [Figure(name.upper(), "", "×", None, speedup) for name, speedup in of_prime.items()]
    figures.append(Figure("geometric mean", "", "×", paper.geometric_mean, _geometric_mean(of_prime)))
    figures.append(Figure("weighted mean", "", "×", paper.weighted_mean, _weighted_mean(of_prime)))
    missing = [name.upper() for name in published().applications if name not in of_prime]
    note = f"The paper's means are over all six applications, ours without {', '.join(missing)}." if missing else ""
    return _section("tpu_prime", figures, missing=note)


def _geometric_mean(speedups: Speedups) -> float:
    return math.exp(math.fsum(math.log(value) for value in speedups.values()) / len(speedups))


def _weighted_mean(speedups: Speedups) -> float:
    shares = {name: published().applications[name].share for name in speedups}
    return math.fsum(shares[name] * value for name, value in speedups.items()) / math.fsum(shares.values())


def compare(folder: Path, target: Target, progress: Progress = lambda _: None) -> Iterator[Section]:
    """The sections, each when it is ready. The applications are those of the paper's whose sources lie in `folder`.

    `progress` is called with the work in hand. Raises `UsageError` E0532 when there is no source, and the errors of compiling.
    """
    return map(with_reasons, _sections(find_programs(folder), target, progress))


def _sections(programs: Mapping[str, Path], target: Target, progress: Progress) -> Iterator[Section]:
    def measured(programs: Mapping[str, Path], level: int, words: str = "") -> Iterator[tuple[str, Measured]]:
        for name, path in programs.items():
            progress(f"{path.name}{words}")
            yield name, measure_file(path, target, level)

    yield from (machine_section(target), matrix_section(target))
    base = dict(measured(programs, 2))
    plain = dict(measured(known(programs), 0, ", -O0"))
    yield from (table3_section(base), plain_section(plain), stream_section(base))
    yield from (table7_section(base), table8_section(base), roofline_section(base, target), inferences_section(base))
    of_designs = speedups(programs, base, target, progress)
    yield from (sensitivity_section(of_designs), prime_section(of_designs[PRIME]))
