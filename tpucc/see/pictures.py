"""The pictures of a compiled model: what the stages hold, handed to the drawing functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tpucc.explain.critical import LIMITS
from tpucc.explain.layer_error import LayerError
from tpucc.explain.recording import Recording
from tpucc.explain.roofs import works_of
from tpucc.explain.segments import matrix_segments
from tpucc.explain.summary import Accuracy
from tpucc.explain.timed import Timed
from tpucc.ir import Graph
from tpucc.see.charts.chart import WAITS, WIDTH
from tpucc.see.charts.errors import error_svg
from tpucc.see.charts.histograms import histograms_svg
from tpucc.see.charts.memory import memory_svg
from tpucc.see.charts.peak import peak_svg
from tpucc.see.charts.roofline import HEIGHT, roofline_svg
from tpucc.see.charts.tiles import tiles_svg
from tpucc.see.charts.timeline import Times, timeline_svg
from tpucc.see.diagrams.dataflow import program_diagram
from tpucc.see.diagrams.diagram import Diagram
from tpucc.see.diagrams.insides import insides
from tpucc.see.diagrams.known import known_kinds
from tpucc.see.diagrams.layergraph import layer_diagram
from tpucc.see.diagrams.operators import SUBTITLE, operator_diagram
from tpucc.see.diagrams.render import Rendered, drawn_as_it_is, render
from tpucc.see.diagrams.rewrites import rewrites
from tpucc.see.page import Opening, PageInput, Picture, Rewriting, Waits
from tpucc.see.page import page as draw_page
from tpucc.see.page.stages import Stage

DIAGRAMS = ("graph", "layers", "program")
"""Pictures of boxes and arrows."""
PAGE_WIDTH, PAGE_HEIGHT, NARROW = 660.0, 300.0, 366.0
"""The width of a chart in the report, which has panes beside it, and the height of its axis."""


def graph_svg(graph: Graph, words: str = SUBTITLE, layers: Graph | None = None) -> str:
    """The operators; with the `layers` that they became, in the colours of the units that compute them."""
    return render(_operators(graph, layers, words)).svg


def _operators(graph: Graph, layers: Graph | None, words: str = SUBTITLE) -> Diagram:
    return operator_diagram(graph, words, None if layers is None else known_kinds(graph, layers))


def layers_svg(layers: Graph, title: str = "") -> str:
    return render(layer_diagram(layers, title)).svg


def program_svg(runtime: Timed) -> str:
    return render(program_diagram(runtime.program, host=_host_of(runtime))).svg


def _host_of(runtime: Timed) -> Sequence[Graph]:
    """The graphs of the host's part, in order; none of a program that was typed without them."""
    return runtime.host.all if runtime.has_host_part else ()


def timeline_of(runtime: Timed) -> str:
    return timeline_svg(runtime.program, times_of(runtime))


def memory_of(runtime: Timed) -> str:
    times = runtime.timeline
    return memory_svg(runtime.program, times.start, times.end, times.makespan)


def peak_of(runtime: Timed) -> str:
    return _peak(runtime, WIDTH)


def _peak(runtime: Timed, width: float) -> str:
    return peak_svg(runtime.program, runtime.stats, times_of(runtime), width)


def roofline_of(runtime: Timed) -> str:
    """The model and its layers on one core, under the target's roof."""
    return _roofline(runtime, WIDTH, HEIGHT)


def _roofline(runtime: Timed, width: float, height: float) -> str:
    model, *layers = works_of(runtime)
    return roofline_svg(runtime.program.target, model, layers, width, height)


def draw_diagrams(kinds: Sequence[str], graph: Graph | None, layers: Graph | None, runtime: Timed) -> dict[str, Rendered]:
    """The diagrams of these kinds that aren't empty."""
    cycles = [layer["cycles"] for layer in runtime.stats["layers"]]
    wanted: dict[str, Diagram | None] = {
        "graph": None if graph is None else _operators(graph, layers),
        "layers": None if layers is None else layer_diagram(layers, runtime.program.title),
        "program": program_diagram(runtime.program, cycles, _host_of(runtime)) if "program" in kinds else None,
    }
    source = runtime.program.source_text
    return {kind: render(replace(diagram, source=source)) for kind in kinds if (diagram := wanted.get(kind)) is not None}


CHARTS: Mapping[str, Callable[[Timed], str]] = {
    "tiles": lambda runtime: tiles_svg(runtime.program),
    "memory": memory_of,
    "timeline": timeline_of,
    "peak": peak_of,
    "roofline": roofline_of,
}
LOSSES: Mapping[str, Callable[[str, Sequence[LayerError]], str]] = {"histograms": histograms_svg, "error": error_svg}
"""Charts of the errors of a model's layers, for which there must be examples; of one layer at least."""
KINDS = ("graph", "layers", "tiles", "program", "memory", "timeline", "peak", "roofline", *LOSSES)


def page(
    runtime: Timed,
    diagrams: Mapping[str, Rendered],
    stages: Sequence[Stage] = (),
    accuracy: Accuracy | None = None,
    notes: Sequence[str] = (),
    errors: Sequence[LayerError] = (),
    recording: Recording | None = None,
    *,
    quantised: bool = False,
) -> str:
    """The self-contained page with these diagrams, by name; `stages` are the graphs after each pass, `errors` the layers' where known,
    `recording` the values of a run; `quantised` says that the source quantises values itself."""
    openings, rewritings = _opened(diagrams, stages)
    pictures = [Picture(kind, drawn.svg, drawn.diagram.boxes) for kind, drawn in diagrams.items()]
    pictures.append(Picture("cells", _peak(runtime, PAGE_WIDTH), narrow=_peak(runtime, NARROW)))
    pictures.append(Picture("roofline", _roofline(runtime, PAGE_WIDTH, PAGE_HEIGHT), narrow=_roofline(runtime, NARROW, PAGE_HEIGHT)))
    return draw_page(
        PageInput(
            program=runtime.program,
            stats=runtime.stats,
            times=times_of(runtime),
            waits=_waits(runtime),
            waiting=runtime.waiting,
            edges=runtime.edges,
            faster=runtime.faster,
            pictures=pictures,
            stages=stages,
            errors=errors,
            accuracy=accuracy,
            notes=notes,
            openings=openings,
            rewritings=rewritings,
            recording=recording,
            quantised=quantised,
        )
    )


def _opened(diagrams: Mapping[str, Rendered], stages: Sequence[Stage]) -> tuple[list[Opening], list[Rewriting]]:
    """The insides of the diagrams' boxes, and what the passes rewrote."""
    inner = insides([(drawn.full, drawn.collapsed) for drawn in diagrams.values()])
    openings = [Opening(inside, _drawn(inside.diagram)) for inside in inner]
    return openings, [Rewriting(found, _drawn(found.before), _drawn(found.after)) for found in rewrites([stage.graph for stage in stages])]


def _drawn(diagram: Diagram | None) -> str:
    return drawn_as_it_is(diagram) if diagram is not None else ""


def times_of(runtime: Timed) -> Times:
    """The timeline as the picture wants it: the waits of each root as intervals."""
    return Times.of(runtime.timeline, matrix_segments(runtime.program, runtime.timeline))


def _waits(runtime: Timed) -> Waits:
    """The matrix unit's waits; segments of one root, one after the other before one instruction, are one."""
    segments = matrix_segments(runtime.program, runtime.timeline)
    places = np.array([list(WAITS).index(limit) if limit in WAITS else -1 for limit in LIMITS], np.int64)[segments.root]
    own = np.flatnonzero(places >= 0)
    start, end, instruction, root = (column[own] for column in (segments.start, segments.end, segments.instruction, places))
    begins = np.ones(len(own), np.bool_)
    begins[1:] = (start[1:] != end[:-1]) | (root[1:] != root[:-1]) | (instruction[1:] != instruction[:-1])
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(own)) - 1 if len(first) else first
    return Waits(start[first], end[last], root[first].astype(np.uint8), instruction[first])
