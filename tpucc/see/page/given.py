"""What the page is made of: a compiled model, its diagrams, and what is known besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tpucc.explain.layer_error import LayerError
from tpucc.explain.recording import Recording
from tpucc.explain.summary import Accuracy
from tpucc.explain.timed import Timed
from tpucc.isa.program import Program
from tpucc.see.charts.timeline import Times
from tpucc.see.diagrams.diagram import Box
from tpucc.see.diagrams.insides import Inside, insides
from tpucc.see.diagrams.render import Rendered
from tpucc.see.diagrams.rewrites import Rewrite, rewrites
from tpucc.see.page.stages import Stage
from tpucc.see.pictures import times_of


@dataclass(frozen=True, eq=False)
class PageInput:
    """All that the page shows.

    `diagrams` have a tab each, by its name; `stages` are the graphs after each pass, `errors` the layers' where they are known, `notes`
    sentences, `recording` the values of a run.
    """

    runtime: Timed
    diagrams: Mapping[str, Rendered] = field(default_factory=dict)
    stages: Sequence[Stage] = ()
    errors: Sequence[LayerError] = ()
    accuracy: Accuracy | None = None
    notes: Sequence[str] = ()
    recording: Recording | None = None
    quantised: bool = False
    """Whether the source quantises values itself."""

    @property
    def program(self) -> Program:
        return self.runtime.program

    @cached_property
    def times(self) -> Times:
        return times_of(self.runtime)

    @cached_property
    def insides(self) -> Sequence[Inside]:
        """What opens in the diagrams."""
        return insides([(drawn.full, drawn.collapsed) for drawn in self.diagrams.values()])

    @cached_property
    def rewrites(self) -> Sequence[Rewrite]:
        """What the passes rewrote."""
        return rewrites([stage.graph for stage in self.stages])

    @property
    def boxes(self) -> Iterator[tuple[str, Sequence[Box]]]:
        """The boxes of each diagram, and of each that opens in one, by its name: number n is the element `NAME-bn`."""
        yield from ((name, drawn.diagram.boxes) for name, drawn in self.diagrams.items() if drawn.diagram.boxes)
        yield from ((inside.name, inside.diagram.boxes) for inside in self.insides if inside.diagram)
