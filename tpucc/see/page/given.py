"""The data of the page: plain values from the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tpucc.explain.layer_error import LayerError
from tpucc.explain.recording import Recording
from tpucc.explain.retiming import Retimed
from tpucc.explain.summary import Accuracy, Stats
from tpucc.explain.waiting import Waiting
from tpucc.isa.program import Program
from tpucc.numerics import Int64
from tpucc.see.charts.timeline import Times
from tpucc.see.diagrams.diagram import Box
from tpucc.see.diagrams.insides import Inside
from tpucc.see.diagrams.rewrites import Rewrite
from tpucc.see.page.stages import Stage
from tpucc.sim.host_work import Edges


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the page: a word for its tab, the SVG and, of a diagram, the boxes: number n is the element `NAME-bn`. A chart may have
    another SVG for narrow windows."""

    name: str
    svg: str
    boxes: tuple[Box, ...] = ()
    narrow: str = ""


@dataclass(frozen=True, slots=True)
class Opening:
    """A box that opens: its inside, and the picture of it; the SVG is empty if there is none."""

    inside: Inside
    svg: str


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A rewrite, and the pictures of the graph before and after it; an empty one where there is nothing of it."""

    rewrite: Rewrite
    before: str
    after: str


@dataclass(frozen=True, eq=False, slots=True)
class Waits:
    """The stretches in which the matrix unit waits, in their order: from and to which cycle, for which root, before which instruction.

    `root` is an index of `chart.WAITS`; `instruction` the multiply that waits, at the end of the program the one that finishes last.
    """

    start: Int64
    end: Int64
    root: npt.NDArray[np.uint8]
    instruction: Int64


@dataclass(frozen=True, eq=False, slots=True)
class PageInput:
    """All that the page shows. `pictures` have a tab each, in their order; `notes` are sentences."""

    program: Program
    stats: Stats
    times: Times
    waits: Waits
    waiting: Waiting
    edges: Edges
    faster: Sequence[Retimed]
    pictures: Sequence[Picture]
    stages: Sequence[Stage] = field(default=())
    errors: Sequence[LayerError] = field(default=())
    accuracy: Accuracy | None = None
    notes: Sequence[str] = field(default=())
    openings: Sequence[Opening] = field(default=())
    rewritings: Sequence[Rewriting] = field(default=())
    recording: Recording | None = None
    quantised: bool = False
    """Whether the source quantises values itself."""
