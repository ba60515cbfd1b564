"""The pictures of a compiled model: what the stages hold, handed to the drawing functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tpucc.explain.layer_error import LayerError
from tpucc.explain.roofs import works_of
from tpucc.explain.segments import matrix_segments
from tpucc.explain.timed import Timed
from tpucc.ir import Graph
from tpucc.isa.program import Program
from tpucc.see.charts.chart import WIDTH
from tpucc.see.charts.errors import error_svg
from tpucc.see.charts.histograms import histograms_svg
from tpucc.see.charts.memory import memory_svg
from tpucc.see.charts.peak import peak_svg
from tpucc.see.charts.roofline import HEIGHT, roofline_svg
from tpucc.see.charts.tiles import tiles_svg
from tpucc.see.charts.timeline import Times, timeline_svg
from tpucc.see.charts.units import units_svg
from tpucc.see.diagrams.dataflow import program_diagram
from tpucc.see.diagrams.diagram import Diagram
from tpucc.see.diagrams.layergraph import layer_diagram
from tpucc.see.diagrams.operators import SUBTITLE, known_kinds, operator_diagram
from tpucc.see.diagrams.render import Rendered, render
from tpucc.sim.timing import Timeline

DIAGRAMS = ("graph", "layers", "program")
"""Pictures of boxes and arrows."""


def graph_svg(graph: Graph, words: str = SUBTITLE, layers: Graph | None = None) -> str:
    """The operators; with the `layers` that they became, in the colours of the units that compute them."""
    return render(_operators(graph, layers, words)).svg


def _operators(graph: Graph, layers: Graph | None, words: str = SUBTITLE) -> Diagram:
    return operator_diagram(graph, words, None if layers is None else known_kinds(graph, layers))


def layers_svg(layers: Graph, title: str = "") -> str:
    """The layer graph; `title` is its name unless it is empty."""
    return render(layer_diagram(layers, title)).svg


def program_svg(runtime: Timed) -> str:
    """The dataflow of the program."""
    return render(program_diagram(runtime.program, host=_host_of(runtime))).svg


def _host_of(runtime: Timed) -> Sequence[Graph]:
    """The graphs of the host's part, in order; none of a program that was typed without them."""
    return runtime.host.all if runtime.has_host_part else ()


def times_of(runtime: Timed) -> Times:
    """The timeline as pictures want it: the waits of each root as intervals."""
    return Times.of(runtime.timeline, matrix_segments(runtime.program, runtime.timeline))


def timeline_of(runtime: Timed) -> str:
    """The units of the device over time."""
    return timeline_svg(runtime.program, times_of(runtime))


def memory_of(runtime: Timed) -> str:
    """The rows of the unified buffer over time."""
    return PROGRAM_CHARTS["memory"](runtime.program, runtime.timeline)


def peak_of(runtime: Timed, width: float = WIDTH, tries: str = "") -> str:
    """Where the array's peak went, `width` pixels wide. `tries` is a sentence about what would help."""
    return peak_svg(runtime.program, runtime.stats, times_of(runtime), width, tries)


def roofline_of(runtime: Timed, width: float = WIDTH, height: float = HEIGHT) -> str:
    """The model and its layers on one core, under the target's roof."""
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
PROGRAM_CHARTS: Mapping[str, Callable[[Program, Timeline], str]] = {
    "timeline": units_svg,
    "memory": lambda program, timeline: memory_svg(program, timeline.start, timeline.end, timeline.makespan),
}
"""Charts of a program of any machine."""
LOSSES: Mapping[str, Callable[[str, Sequence[LayerError]], str]] = {"histograms": histograms_svg, "error": error_svg}
"""Charts of the errors of a model's layers, for which there must be examples; of one layer at least."""
KINDS = ("graph", "layers", "tiles", "program", "memory", "timeline", "peak", "roofline", *LOSSES)
