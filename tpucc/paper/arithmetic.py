"""What follows from the machine alone: peak, tile fetch, ridge, fill, and section 7's 600×600 matrix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tpucc.diagnostics import Source
from tpucc.paper.applications import Measured, measure
from tpucc.paper.figures import Figure, Section
from tpucc.paper.published import Matrix600, published
from tpucc.paper.sensitivity import scaled
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
    note = "The cycles are 65,536 bytes ÷ 34 GB/s at 700 MHz; the ridge is where a tile's rows take as long as its fetch."
    return Section("machine", "The machine (section 2, table 2)", figures, (note,))


def matrix_section(target: Target) -> Section:
    """Section 7's example, compiled for `target` and for one with a unit twice as wide."""
    paper = published().matrix_600
    narrow, wide = (_one_matrix(paper, machine) for machine in (target, scaled(target, _twice_as_wide())))
    parts = narrow.stats["breakdown"]
    fill = 100 * parts["useful_macs"] / parts["array_active"]
    figures = (
        Figure("256×256: steps", "", "tiles", paper.narrow_steps, narrow.stats["tile_fetches"]),
        Figure("256×256: fetching them", "", "µs", paper.narrow_microseconds, 1e6 * narrow.fetched),
        Figure("256×256: the whole layer", "", "µs", None, 1e6 * narrow.seconds),
        Figure("256×256: cells in use", "", "%", paper.fill_percent, fill),
        Figure("512×512: steps", "", "tiles", paper.wide_steps, wide.stats["tile_fetches"]),
        Figure("512×512: fetching them", "", "µs", paper.wide_microseconds, 1e6 * wide.fetched),
        Figure("512×512: the whole layer", "", "µs", None, 1e6 * wide.seconds),
    )
    note = (
        "The paper rounds a fetch of 1.93 µs to 2 µs. The whole layer is one product at LSTM1's batch of 96 with its input and output; cells "
        "in use are table 3's row 2 ÷ row 1 of LSTM1."
    )
    return Section("matrix_600", "A 600×600 matrix (section 7)", figures, (note,))


def _one_matrix(paper: Matrix600, target: Target) -> Measured:
    text = _ONE_MATRIX.format(batch=paper.batch, size=paper.size)
    return measure(Source("matrix.tpu", text), Path(), target)


def _twice_as_wide() -> Mapping[str, float]:
    return next(variant.scale for variant in published().variants if variant.name == "matrix")
