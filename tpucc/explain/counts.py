"""One program's cycles counted in four ways: by this simulator, with nothing overlapped, and by the formulas of two other simulators.

| way | a layer's cycles |
|---|---|
| overlapped | those of the timeline: five units work at the same time (see `timing`, `segments`) |
| serial | each instruction alone, one after the other; a tile's shift and a multiply's fill and drain count in full |
| SCALE-Sim | `folds × (M + 2R + C - 2) - 1`: for each tile of the K × N weights R cycles to load it, M rows, R + C - 2 to fill and drain |
| OpenTPU | `L + 2N` for each multiply of L rows on an N × N array |

SCALE-Sim's is the weight-stationary count of its version 2, which gives the number of the last cycle, hence the - 1 (Samajdar et al.,
"SCALE-Sim: Systolic CNN Accelerator Simulator", arXiv 1811.02883, 2018). It sees the layer's shape, not the program; a convolution's K is
window × channels, as if patches lay side by side, and each group of channels is a product of its own. OpenTPU's is from its README, section
"Latencies" (UC Santa Barbara ArchLab, 2017). Both count the array alone: no weight memory, no host, no activation; OpenTPU's weights are
there whenever they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tpucc.explain.attribution import attribution
from tpucc.explain.segments import matrix_segments
from tpucc.isa.effects import effects
from tpucc.isa.program import LayerInfo, Program
from tpucc.numerics import Int64
from tpucc.sim.timing import Timeline

WAYS = ("overlapped", "serial", "scale_sim", "opentpu")


@dataclass(frozen=True, eq=False, slots=True)
class Counts:
    """Cycles by layer: int64 [layers] for each of `WAYS`, and for each term of `serial`: transfers and host steps, weight fetches, weight
    shifts, rows multiplied, fill and drain, the activation unit."""

    ways: dict[str, Int64]
    parts: dict[str, Int64]


def count_cycles(program: Program, timeline: Timeline) -> Counts:
    """The four counts of a program that has this timeline."""
    segments, whose, target, account = matrix_segments(program, timeline), attribution(program), program.target, program.machine.account
    touched, each, layer = effects(program.instructions, program.machine), timeline.end - timeline.start, whose.of
    multiplies, taken = touched.multiplies, layer[touched.pops]

    def by_layer(layer: Int64, cycles: Int64) -> Int64:
        """Sums of cycles; exact, as they stay below 2^53."""
        return np.bincount(layer, cycles, minlength=len(whose.layers)).astype(np.int64)

    parts = {
        "host": by_layer(layer, each * (touched.engine == account.supplies)),
        "fetch": by_layer(layer, each * touched.pushes),
        "shift": by_layer(taken, np.full(len(taken), target.tile_shift_cycles)),
        "rows": by_layer(layer, each * multiplies),
        "pipeline": by_layer(layer, multiplies * target.pipeline_cycles),
        "activation": by_layer(layer, each * (touched.engine == account.finishes)),
    }
    ways = {
        "overlapped": by_layer(segments.layer, segments.cycles),
        "serial": np.stack(list(parts.values())).sum(axis=0),
        "scale_sim": np.array([scale_sim_cycles(layer, target.mxu) for layer in whose.layers], np.int64),
        "opentpu": by_layer(layer[multiplies], touched.rows[multiplies] + 2 * target.mxu),
    }
    return Counts(ways, parts)


def scale_sim_cycles(layer: LayerInfo, mxu: int) -> int:
    """SCALE-Sim's count of a layer on a square array, a product for each group; 0 for a layer that isn't a product of the model."""
    depth, width = layer.weights
    if not layer.macs:
        return 0
    own = 1 if layer.is_by_lanes else layer.group[1] or width
    rows, folds = layer.macs // (depth * width), width // own * -(-depth // mxu) * -(-own // mxu)
    return folds * (rows + 2 * mxu + mxu - 2) - 1


def counts_summary(program: Program, counts: Counts) -> dict[str, Any]:
    """The counts as JSON values: sums, the parts of `serial`, and a row a layer."""
    rows = zip(attribution(program).layers, *(counts.ways[way].tolist() for way in WAYS), strict=True)
    return {
        **{way: int(counts.ways[way].sum()) for way in WAYS},
        "serial_parts": {part: int(cycles.sum()) for part, cycles in counts.parts.items()},
        "layers": [{"name": layer.name, "kind": layer.kind, **dict(zip(WAYS, cycles, strict=True))} for layer, *cycles in rows],
    }
