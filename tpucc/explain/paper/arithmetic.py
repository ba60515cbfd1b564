"""Figures that follow from the machine alone: peak, tile fetch, ridge, fill, and section 7's 600×600 matrix."""

from __future__ import annotations

from pathlib import Path

from tpucc.diagnostics import Source
from tpucc.explain.paper.applications import Measured, measure
from tpucc.explain.paper.figures import Figure, Section
from tpucc.explain.paper.published import Matrix600, published
from tpucc.explain.paper.sensitivity import scaled
from tpucc.target import Target, load_target

_ONE_MATRIX = """weights random(seed=0)
model matrix(x: f32[{batch}, {size}] in [-1.0, 1.0]):
    weight w: f32[{size}, {size}]
    return x @ w
"""
_SUM_BYTES = 4
_MIB = 2**20


def machine_section(target: Target) -> Section:
    """Peak, fetch, ridge and memories of `target` beside the paper's, and the ridge of TPU′."""
    paper, prime = published().machine, load_target("tpu_v1_prime")
    accumulators = target.accumulator_rows * target.mxu * _SUM_BYTES / _MIB
    figures = (
        Figure("peak", "", "TOPS", paper.peak_tops, target.peak_ops / 1e12),
        Figure("fetch of a weight tile", "", "cycles", paper.tile_fetch_cycles, target.tile_fetch_cycles),
        Figure("ridge", "", "MACs/byte", paper.ridge_macs_per_byte, target.ridge_macs_per_byte),
        Figure("ridge of TPU′", "", "MACs/byte", paper.prime_ridge_macs_per_byte, prime.ridge_macs_per_byte),
        Figure("accumulators", "", "MiB", paper.accumulators_mib, accumulators),
        Figure("unified buffer", "", "MiB", paper.unified_buffer_mib, target.unified_buffer_rows * target.mxu / _MIB),
    )
    note = "The paper's cycles are 64 KiB ÷ 34 GB/s at 700 MHz; the ridge is where the rows of a tile take as long as its fetch."
    return Section("machine", "The machine (section 2, table 2)", figures, (note,))


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
    note = (
        "The paper rounds a fetch of 1.93 µs to 2 µs. The whole layer is one product at LSTM1's batch of 96, with its input and output. "
        "Cells in use are table 3's row 2 ÷ row 1 of LSTM1."
    )
    return Section("matrix_600", "A 600×600 matrix (section 7)", figures, (note,))


def _one_matrix(paper: Matrix600, target: Target) -> Measured:
    text = _ONE_MATRIX.format(batch=paper.batch, size=paper.size)
    return measure(Source("matrix.tpu", text), Path(), target)
