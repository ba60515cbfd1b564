"""The rendering chain: who lays out the diagrams.

In order: the program that `$TPUCC_DOT` names, the system's `dot`, pygraphviz (whose wheels carry Graphviz), and the layout that is built
in. The first three work in a child process with a time limit; whatever happens to it, there is a picture. `TPUCC_DOT=builtin` goes
straight to the last.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata, util

from tpucc.diagnostics import reason
from tpucc.viz.diagrams.collapse import collapsed
from tpucc.viz.diagrams.diagram import Diagram
from tpucc.viz.diagrams.dot import dot_source
from tpucc.viz.diagrams.graphviz_layout import read_layouts
from tpucc.viz.diagrams.layout import Layout, layered
from tpucc.viz.diagrams.paint import painted
from tpucc.viz.diagrams.wrap import wrapped

VARIABLE = "TPUCC_DOT"
BUILT_IN = "built-in layout"
LIMIT = 10.0
"""Seconds that one renderer gets for all the pictures of a call."""
LEAST_PYGRAPHVIZ = (2, 0, 4)
WORKER = """
import json, sys
from pygraphviz import AGraph
for source in json.load(sys.stdin):
    sys.stdout.buffer.write(AGraph(string=source).draw(format="json0", prog="dot") + b"\\n")
"""
"""Run in a child process: a crash or a hang in Graphviz can't take the compiler with it."""


@dataclass(frozen=True, slots=True)
class Renderer:
    """One link of the chain: its name, whether it is there, and where or why not."""

    name: str
    available: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A picture, the diagram as it was drawn, its source, who laid it out, what was tried in vain before, and the diagram in full.

    Box number n of the diagram is the element `KEY-bn` of the picture.
    """

    svg: str
    diagram: Diagram
    dot: str
    renderer: str
    failures: tuple[str, ...]
    full: Diagram


class RenderError(Exception):
    """A renderer that gave no picture; the message says why."""


def renderers() -> tuple[Renderer, ...]:
    """The chain in its order, for `tpucc doctor`. The first that is available will be used."""
    wanted = os.environ.get(VARIABLE, "")
    chain = []
    if wanted and wanted != "builtin":
        path = shutil.which(wanted)
        chain.append(Renderer(f"${VARIABLE}", path is not None, path or f"{wanted} isn't a program"))
    if wanted != "builtin":
        dot = shutil.which("dot")
        chain.append(Renderer("dot", dot is not None, dot or "not on the path"))
        chain.append(_pygraphviz())
    chain.append(Renderer(BUILT_IN, True, "always there"))
    return tuple(chain)


def render(diagram: Diagram, limit: float = LIMIT) -> Rendered:
    """One diagram as SVG; never fails for want of a renderer."""
    return render_all([diagram], limit)[0]


def render_all(diagrams: Sequence[Diagram], limit: float = LIMIT) -> list[Rendered]:
    """The diagrams as SVG, those with too many boxes collapsed, all laid out in one child process."""
    small = [collapsed(diagram) for diagram in diagrams]
    sources = [dot_source(diagram) for diagram in small]
    layouts, name, failures = _laid_out(small, sources, limit)
    pictures = [painted(d, wrapped(d, layout)) for d, layout in zip(small, layouts, strict=True)]
    drawn = zip(pictures, small, sources, diagrams, strict=True)
    return [Rendered(svg, diagram, dot, name, failures, full) for svg, diagram, dot, full in drawn]


def _laid_out(diagrams: Sequence[Diagram], sources: Sequence[str], limit: float) -> tuple[list[Layout], str, tuple[str, ...]]:
    failures: list[str] = []
    for link in renderers():
        if not link.available or link.name == BUILT_IN or not diagrams:
            continue
        command = [sys.executable, "-P", "-c", WORKER] if link.name == "pygraphviz" else [link.detail, "-Kdot", "-Tjson0"]
        text = json.dumps(sources) if link.name == "pygraphviz" else "\n".join(sources)
        try:
            return read_layouts(_child(command, text, limit), diagrams), link.name, tuple(failures)
        except (RenderError, ValueError, RecursionError) as error:
            failures.append(f"{link.name}: {error}")
    return [layered(diagram) for diagram in diagrams], BUILT_IN, tuple(failures)


def _child(command: list[str], text: str, limit: float) -> str:
    """Runs a command on `text` in a session of its own; past the limit the whole session is ended."""
    pipe = subprocess.PIPE
    try:
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        raise RenderError(reason(error)) from None
    try:
        answer, _ = child.communicate(text.encode("utf-8", "backslashreplace"), timeout=limit)
    except subprocess.TimeoutExpired:
        raise RenderError(f"no answer in {limit:g} s") from None
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
