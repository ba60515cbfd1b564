"""The rendering chain: who lays out the diagrams.

In order: a function that was handed over with `use`, the program that `$TPUCC_DOT` names, pygraphviz (whose wheels carry Graphviz 14), the
system's `dot`, and the layout that is built in. The system's comes late: Graphviz 2.43, which Debian 12 has, lays out the same graph
differently from run to run. The three programs work in a child process with a time limit; whatever happens to it, there is a picture.
`TPUCC_DOT=builtin` goes straight to the last.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata, util

from tpucc.diagnostics import reason
from tpucc.viz.diagrams.collapse import LARGEST, Collapsed, sized
from tpucc.viz.diagrams.diagram import Diagram
from tpucc.viz.diagrams.dot import dot_source
from tpucc.viz.diagrams.graphviz_layout import read_layouts
from tpucc.viz.diagrams.layout import Layout, layered
from tpucc.viz.diagrams.paint import extent, painted
from tpucc.viz.diagrams.wrap import wrapped
from tpucc.viz.rect import Point

VARIABLE = "TPUCC_DOT"
BUILT_IN = "built-in layout"
GET_GRAPHVIZ = "apt install graphviz, brew install graphviz, or graphviz.org/download"
NARROW = 240.0
"""The least width of a heading beside another picture."""
PATIENCE = 300.0
"""Seconds after which a renderer is taken to hang. What it gets is bounded in size instead, so that the same picture comes of it however
busy the machine is: a page's diagrams take less than a second."""
LEAST_PYGRAPHVIZ = (2, 0, 4)
WORKER = """
import json, sys
from pygraphviz import AGraph
for source in json.load(sys.stdin):
    sys.stdout.buffer.write(AGraph(string=source).draw(format="json0", prog="dot") + b"\\n")
"""
"""Run in a child process: a crash or a hang in Graphviz can't take the compiler with it."""
Layouter = Callable[[str], str]
"""Gets a diagram in DOT, and gives Graphviz's JSON of its layout (`-Kdot -Tjson0`)."""
_handed: dict[str, Layouter] = {}


@dataclass(frozen=True, slots=True)
class Renderer:
    """One link of the chain: its name, whether it is there, and where or why not."""

    name: str
    available: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A picture, the diagram as it was drawn, its source, who laid it out, what was tried in vain before, the diagram in full, and what
    each box that was drawn stands for.

    Box number n of the diagram is the element `KEY-bn` of the picture.
    """

    svg: str
    diagram: Diagram
    dot: str
    renderer: str
    failures: tuple[str, ...]
    full: Diagram
    collapsed: Collapsed

    @property
    def warning(self) -> str:
        """That the built-in layout had to step in for a renderer, and why; empty if it hadn't."""
        if self.renderer != BUILT_IN or not self.failures:
            return ""
        return f"the picture {self.diagram.key} is drawn by the {BUILT_IN}, less well: {'; '.join(self.failures)}"


class RenderError(Exception):
    """A renderer that gave no picture; the message says why."""


def use(name: str, layouter: Layouter) -> None:
    """Puts a layouter of this process at the head of the chain, for where there are no child processes: in a browser, Graphviz in
    WebAssembly. What it raises is a reason to go on with the next."""
    _handed[name] = layouter


def renderers() -> tuple[Renderer, ...]:
    """The chain in its order, for `tpucc doctor`. The first that is available will be used."""
    wanted = os.environ.get(VARIABLE, "")
    chain = []
    if wanted != "builtin":
        chain += [Renderer(name, True, "in this process") for name in _handed]
    if wanted and wanted != "builtin":
        path = shutil.which(wanted)
        chain.append(Renderer(f"${VARIABLE}", path is not None, path or f"{wanted} isn't a program"))
    if wanted != "builtin":
        chain.append(_pygraphviz())
        dot = shutil.which("dot")
        chain.append(Renderer("dot", dot is not None, dot or f"not on the path: {GET_GRAPHVIZ}"))
    chain.append(Renderer(BUILT_IN, True, "always there"))
    return tuple(chain)


def render(diagram: Diagram, patience: float = PATIENCE) -> Rendered:
    """One diagram as SVG; never fails for want of a renderer."""
    return render_all([diagram], patience)[0]


def render_all(diagrams: Sequence[Diagram], patience: float = PATIENCE) -> list[Rendered]:
    """The diagrams as SVG, each collapsed until its picture is no larger than `LARGEST`. Those that are tried at once share a process."""
    ways = [sized(diagram) for diagram in diagrams]
    found: dict[int, Rendered] = {}
    tried = dict(enumerate(map(next, ways)))
    while tried:
        layouts = _laid_out([small.diagram for small in tried.values()], patience)
        again: dict[int, Collapsed] = {}
        for (index, small), laid in zip(tried.items(), layouts, strict=True):
            layout = wrapped(small.diagram, laid.layout)
            smaller = None if _fits(extent(small.diagram, layout)) else next(ways[index], None)
            if smaller is not None:
                again[index] = smaller
                continue
            svg, dot = painted(small.diagram, layout), dot_source(small.diagram)
            found[index] = Rendered(svg, small.diagram, dot, laid.renderer, laid.failures, diagrams[index], small)
        tried = again
    return [found[index] for index in range(len(diagrams))]


def drawn_as_they_are(diagrams: Sequence[Diagram], patience: float = PATIENCE) -> list[str]:
    """The diagrams as SVG, whatever their size, with headings no wider than `NARROW` where they are narrow themselves."""
    laid = _laid_out(diagrams, patience)
    return [painted(diagram, wrapped(diagram, each.layout), NARROW) for diagram, each in zip(diagrams, laid, strict=True)]


def _fits(size: Point) -> bool:
    return all(own <= most for own, most in zip(size, LARGEST, strict=True))


@dataclass(frozen=True, slots=True)
class _Laid:
    """A layout, who made it, and what was tried in vain before."""

    layout: Layout
    renderer: str
    failures: tuple[str, ...]


def _laid_out(diagrams: Sequence[Diagram], patience: float) -> list[_Laid]:
    """Each diagram by the first renderer that can."""
    done: dict[int, _Laid] = {}
    failures: list[tuple[str, ...]] = [()] * len(diagrams)
    for link in renderers():
        if link.name == BUILT_IN or not link.available:
            continue
        waiting = [index for index in range(len(diagrams)) if index not in done]
        for index, answer in zip(waiting, _answers(link, [diagrams[index] for index in waiting], patience), strict=True):
            if isinstance(answer, Layout):
                done[index] = _Laid(answer, link.name, failures[index])
            else:
                failures[index] += (f"{link.name}: {answer}",)
    return [done.get(index) or _Laid(layered(diagram), BUILT_IN, failures[index]) for index, diagram in enumerate(diagrams)]


def _answers(link: Renderer, diagrams: Sequence[Diagram], patience: float) -> list[Layout | str]:
    """For each diagram its layout, or why there is none. If they can't be had all at once, each is asked for alone."""
    sources = [dot_source(diagram) for diagram in diagrams]
    try:
        return [*read_layouts(_json(link, sources, patience), diagrams)] if diagrams else []
    except (RenderError, ValueError, RecursionError) as error:
        if len(diagrams) == 1:
            return [str(error)]
    return [answer for diagram in diagrams for answer in _answers(link, [diagram], patience)]


def _json(link: Renderer, sources: Sequence[str], patience: float) -> str:
    """What a renderer says of these diagrams, one after the other. Raises `RenderError`."""
    if link.name in _handed:
        try:
            return "\n".join(map(_handed[link.name], sources))
        except Exception as error:
            raise RenderError(f"{type(error).__name__}: {error}") from None
    if link.name == "pygraphviz":
        return _child([sys.executable, "-P", "-c", WORKER], json.dumps(sources), patience)
    return _child([link.detail, "-Kdot", "-Tjson0"], "\n".join(sources), patience)


def _child(command: list[str], text: str, patience: float) -> str:
    """Runs a command on `text` in a session of its own; past its time the whole session is ended."""
    pipe = subprocess.PIPE
    try:
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        raise RenderError(reason(error)) from None
    try:
        answer, _ = child.communicate(text.encode("utf-8", "backslashreplace"), timeout=patience)
    except subprocess.TimeoutExpired:
        raise RenderError(f"no answer in {patience:g} s") from None
    finally:
        _end(child)
    if child.returncode:
        raise RenderError(f"exit status {child.returncode}")
    return answer.decode("utf-8", "replace")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends the child and what it started, if it still runs; never waits for pipes that others hold."""
    if child.poll() is not None:
        return
    if hasattr(os, "killpg"):
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()
    child.wait()


def _pygraphviz() -> Renderer:
    if util.find_spec("pygraphviz") is None:
        return Renderer("pygraphviz", False, "not installed: pip install pygraphviz")
    version = metadata.version("pygraphviz")
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    if numbers < LEAST_PYGRAPHVIZ:
        return Renderer("pygraphviz", False, f"{version} is too old: needs 2.0.4, whose wheels carry Graphviz")
    return Renderer("pygraphviz", True, version)
