"""The files that `tpucc compile` writes, as bytes by name."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from tpucc.compilation import Compilation
from tpucc.explain.by_pass import Step
from tpucc.explain.fidelity import fidelity
from tpucc.explain.life import life
from tpucc.explain.noise import quantises_values, rounded_notes
from tpucc.explain.quality import Accuracy
from tpucc.explain.recording import recording
from tpucc.explain.timed import Timed
from tpucc.ir import Graph
from tpucc.ir.codec import stamped
from tpucc.ir.printer import print_graph
from tpucc.isa.assembler import disassemble
from tpucc.isa.container import encode
from tpucc.lowering.tiletext import print_tiles
from tpucc.numerics import Int64
from tpucc.see import pictures
from tpucc.see.page import PageInput, page
from tpucc.see.page.hardware import Trace
from tpucc.see.page.stages import Stage

EMIT = ("graph", "layers", "tile", "asm", "tpub", "stats", "svg", "report")
"""The kinds that `--emit` takes."""


@dataclass(frozen=True)
class Artifacts:
    """Files by name, and how long drawing took in seconds; 0 where nothing was drawn."""

    files: dict[str, bytes]
    seconds: float = 0.0


def artifacts(
    compilation: Compilation,
    runtime: Timed,
    stem: str,
    kinds: Collection[str],
    accuracy: Accuracy | None = None,
    with_data: bool = False,
    window: Int64 | None = None,
    steps: Sequence[Step] = (),
    hardware: Trace | None = None,
) -> Artifacts:
    """The files of these kinds. `stem` is the source file's name without its suffix; `accuracy` is for the page. In the text forms large
    constants stand by their digests, unless `with_data`. `window` are the instructions whose values the page has; see `recording`.
    `steps` are what each pass gave, `hardware` the registers of the hardware, for the page."""
    files = {name: text.encode("utf-8", "surrogatepass") for name, text in _texts(compilation, runtime, stem, kinds, with_data)}
    if "tpub" in kinds:
        files[f"{stem}.tpub"] = encode(runtime.program)
    if "stats" in kinds:
        files["stats.json"] = msgspec.json.format(msgspec.json.encode({**runtime.stats, "what_if": runtime.faster}), indent=2) + b"\n"
    if "svg" not in kinds and "report" not in kinds:
        return Artifacts(files)
    started = time.perf_counter()
    diagrams = pictures.draw_diagrams(pictures.DIAGRAMS, compilation.graph, compilation.layers, runtime)
    errors = fidelity(compilation, runtime)
    if "svg" in kinds:
        svgs = {kind: drawn.svg for kind, drawn in diagrams.items()} | {kind: draw(runtime) for kind, draw in pictures.CHARTS.items()}
        svgs |= {kind: draw(runtime.program.title, errors) for kind, draw in pictures.LOSSES.items() if errors}
        files |= {f"{kind}.svg": svg.encode() for kind, svg in svgs.items()}
        files |= {f"{kind}.dot": drawn.dot.encode() for kind, drawn in diagrams.items()}
    if "report" in kinds:
        quantised = compilation.meant is not None and quantises_values(compilation.meant)
        notes = [*_notes(compilation), *(rounded_notes(compilation.meant) if accuracy is not None else ())]
        stages = [Stage(s.stage, s.summary, s.value) for s in compilation.snapshots if isinstance(s.value, Graph)]
        shown = recording(compilation, runtime, window)
        lived = life(compilation, runtime, asked=window is not None)
        given = PageInput(runtime, diagrams, stages, errors, accuracy, notes, shown, quantised, steps, lived, hardware)
        files["report.html"] = page(given).encode()
    return Artifacts(files, time.perf_counter() - started)


def _texts(compilation: Compilation, runtime: Timed, stem: str, kinds: Collection[str], with_data: bool) -> Iterator[tuple[str, str]]:
    if "graph" in kinds and compilation.graph is not None:
        yield f"{stem}.graph", stamped(print_graph(compilation.graph, with_data=with_data), "#")
    if "layers" in kinds and compilation.layers is not None:
        yield f"{stem}.layers.graph", stamped(compilation.layers_text(with_data), "#")
    if "tile" in kinds and compilation.tiles is not None:
        yield f"{stem}.tile", stamped(print_tiles(compilation.tiles, with_data), ";")
    if "asm" in kinds:
        yield f"{stem}.asm", stamped(disassemble(runtime.program, with_data), ";")


def _notes(compilation: Compilation) -> list[str]:
    """The messages of compiling, after the params that have other values than in the source."""
    given = ", ".join(f"{name} = {value}" for name, value in compilation.params.items())
    return [*([f"compiled with {given}"] if given else []), *compilation.warnings]
