"""The paper's tables about the applications, beside our numbers: tables 1, 3, 4, 7 and 8."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tpucc.explain.paper.applications import Measured
from tpucc.explain.paper.figures import Figure, Section
from tpucc.explain.paper.published import Application, published
from tpucc.target import Target

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
MIB = 2**20
Base = Mapping[str, Measured]


def table3_section(base: Base) -> Section:
    """Where the cycles go, and the speed."""
    notes = (
        "As in the paper, the cycles are those of the device and its link. What the host computes before and after isn't counted.",
        "Rows 1, 4, 5 and 6 add up to 100 % of the cycles; 2 and 3 are shares of the peak, 7 and 8 parts of row 6.",
        "The paper's row 9 is from production, its other rows are from counters, and it says that they don't quite agree: CNN0's row 2 "
        "would be 71.7 TOPS, MLP1's 8.6 and CNN1's 20.6.",
    )
    return Section("table_3", "Where the cycles go (table 3)", _table3(base, TABLE3, _is_any), notes)


def plain_section(plain: Base) -> Section:
    """Where the cycles go in programs that aren't optimised: what overlapping is worth, and what the paper's programs may have lacked."""
    notes = (
        "Compiled with -O0: one operator after the other, each for the whole batch, and the outputs leave at the end. Rows 1 to 6 of the "
        "paper's MLPs and LSTM0 are those of such a program within 5 points: so most of the MLPs' row 6 may be the input and the output on "
        "the host link, of which the paper counts the input (row 8). Its CNN0 must have been overlapped.",
    )
    title = "Where the cycles go without optimisation (table 3, -O0)"
    return Section("table_3_plain", title, _table3(plain, TABLE3, _is_known), notes)


def stream_section(base: Base) -> Section:
    """Speed and input stalls in a stream of batches, where transfers cross while others compute."""
    notes = (
        "Each batch of a stream whose inputs arrive during the batch before and whose outputs leave during the one after. The "
        "paper's counters are those of one batch alone: its row 8 has input stalls, and a stream whose link has time left has none. "
        "Its row 9 is from production: it is near one batch alone for MLP0, near a stream for CNN0, and between both for MLP1.",
    )
    return Section("stream", "In a stream of batches (table 3)", _table3(base, STREAM, _is_known, lambda ours: ours.stats["stream"]), notes)


def table7_section(base: Base) -> Section:
    """The error of Google's model, and of ours."""
    figures = _across(base, "error in cycles", "%", lambda paper: paper.model_error, _cycle_error)
    notes = (
        "The paper's is Google's own performance model against the counters. Ours is what row 9 of table 3 says about cycles for the same "
        "work: published TOPS ÷ ours − 1, without its sign.",
    )
    return Section("table_7", "Error of the model (table 7)", tuple(figures), notes)


def table8_section(base: Base) -> Section:
    """The unified buffer's highest use."""
    figures = _across(base, "unified buffer", "MiB", lambda paper: paper.buffer_mib, lambda ours, _: ours.stats["ub_peak_bytes"] / MIB)
    return Section("table_8", "Highest use of the unified buffer (table 8)", tuple(figures))


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
    notes = (
        f"The roof is the peak or 2 × intensity × {target.weight_bandwidth / 1e9:.4g} GB/s, whichever is less; the ridge is at "
        f"{target.ridge_macs_per_byte:,.0f}. "
        "The paper counts weights; we count all bytes that are fetched, padding included.",
    )
    return Section("roofline", "Points under the roofline (table 1, figure 5)", tuple(figures), notes)


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
    note = f"The second row of the TPU adds the host's share of table 5 to our time.{batch}"
    return Section("table_4", "Inferences a second of MLP0 (table 4)", figures, (note,))


def _is_any(application: Application) -> bool:
    return True


def _is_known(application: Application) -> bool:
    return not application.qualitative


def _across(
    base: Base,
    row: str,
    unit: str,
    paper: Callable[[Application], float],
    ours: Callable[[Measured, Application], float],
    chosen: Callable[[Application], bool] = _is_any,
) -> Iterator[Figure]:
    """A row over all applications that are `chosen`; ours is missing where there is no program."""
    for name, application in published().applications.items():
        if chosen(application):
            yield Figure(row, name.upper(), unit, paper(application), ours(base[name], application) if name in base else None)


def _table3(
    base: Base,
    rows: Mapping[str, str],
    chosen: Callable[[Application], bool],
    numbers: Callable[[Measured], Mapping[str, Any]] = lambda ours: ours.stats,
) -> tuple[Figure, ...]:
    """Rows of table 3 by their keys; ours are of these numbers of each application."""

    def row(key: str) -> Iterator[Figure]:
        def ours(measured: Measured, _: Application) -> float:
            found = numbers(measured)
            return float(found["tops"] if key == "tops" else found["breakdown"][key])

        return _across(base, rows[key], "TOPS" if key == "tops" else "%", lambda paper: paper.table3[key], ours, chosen)

    return tuple(figure for key in rows for figure in row(key))


def _cycle_error(ours: Measured, paper: Application) -> float:
    return 100 * abs(paper.table3["tops"] / float(ours.stats["tops"]) - 1)
