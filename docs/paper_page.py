"""The pages that set our figures beside published ones: those of `tpucc paper`, and the peaks of the targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tpucc.explain.paper.comparison import compare
from tpucc.explain.paper.figures import Section
from tpucc.explain.paper.published import Peak, published
from tpucc.target import Target, load_target, target_names

PROGRAMS = Path(__file__).resolve().parents[1] / "programs" / "paper"
COLUMNS = 3
"""Applications side by side."""


def paper_page() -> str:
    """What `tpucc paper` prints, on `tpu_v1`."""
    return "\n".join(_paper()) + "\n"


def targets_page() -> str:
    """Every target, and the peaks of all generations beside the published ones."""
    return "\n".join([*_targets(), *_peaks()]) + "\n"


def _paper() -> Iterator[str]:
    yield "# Beside the paper\n"
    yield (
        "What `tpucc paper` prints: figures of Jouppi et al., “In-Datacenter Performance Analysis of a Tensor Processing Unit”, ISCA 2017, "
        "beside those of `tpu_v1`, from the programs in `programs/paper`. Differences are in percent, for shares in points; ~ marks what "
        "the paper says in words. Nothing is tuned for one application: all run on one target file by one set of rules.\n"
    )
    for section in compare(PROGRAMS, load_target("tpu_v1")):
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    yield f"## {section.title}\n"
    for start in range(0, len(section.columns), COLUMNS):
        columns = section.columns[start : start + COLUMNS]
        yield from table(section.head(columns), section.grid(columns))
    for sentence in section.notes:
        yield f"{sentence}\n"
    for names, reason in section.reasons():
        yield f"- **{names}**: {reason}"
    yield ""


def _targets() -> Iterator[str]:
    yield "# Targets\n"
    for name in target_names():
        target = load_target(name)
        yield f"## {name}\n\n{target.description}. {_numbers(target)}\n"


def _numbers(target: Target) -> str:
    peak = (
        f"Peak {target.chip_peak_ops / 1e12:.4g} {target.peak_unit}; a tile is fetched in {target.tile_fetch_cycles:,} cycles, and the "
        f"ridge is at {target.ridge_macs_per_byte:,.0f} multiply-accumulates a byte of weights."
    )
    return f"{peak} A description: it {target.obstacle}." if target.obstacle else peak


def _peaks() -> Iterator[str]:
    yield "## Peaks, computed and published\n"
    yield "Computed: chips × cores × matrix units × dimension² × 2 × clock, in 10¹² operations a second.\n"
    head = ("target", "chips", "cores", "units", "dimension", "MHz", "data type", "computed", "published", "difference", "source")
    yield from table(head, [_peak(peak) for peak in published().peaks])
    for peak in published().peaks:
        if peak.remark:
            yield f"- **{peak.target}, {peak.chips} chips, {peak.published:g}**: {peak.remark}"


def _peak(peak: Peak) -> tuple[str, ...]:
    target = load_target(peak.target)
    computed = peak.chips * target.chip_peak_ops / 1e12
    sizes = (str(number) for number in (peak.chips, target.cores, target.matrix_units, target.mxu))
    gap = f"{100 * (computed - peak.published) / peak.published:+.1f}%"
    rates = (f"{target.clock_hz / 1e6:,.0f}", target.data_type, f"{computed:.4g}", f"{peak.published:g}", gap)
    return (f"`{peak.target}`", *sizes, *rates, peak.source)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""
