"""The files of a training and of its step: the arrays that it writes, the step graph as text and picture, and the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tpucc.diagnostics import Source
from tpucc.explain.names import shown
from tpucc.explain.quality import Measure
from tpucc.ir.codec import stamped
from tpucc.ir.printer import print_graph
from tpucc.isa.assembler import disassemble
from tpucc.isa.container import encode
from tpucc.isa.program import Program
from tpucc.language.elaborate import Model
from tpucc.output_files import write_files
from tpucc.see.diagrams.paint import painted
from tpucc.see.diagrams.render import dot_source
from tpucc.see.pictures import PROGRAM_CHARTS
from tpucc.sim.timing import time_program
from tpucc.training.roles import Parts, parts_of
from tpucc.training.session import Session
from tpucc.training.step import Step
from tpucc.training.timing.step_time import StepTime
from tpucc.training_page.page import SCRIPTS as SCRIPTS
from tpucc.training_page.page import training_page
from tpucc.training_page.step_graph import StepPicture, step_picture
from tpucc.training_page.step_time import step_time_svg

WRITTEN = ("weights.npz", "state.npz", "history.json", "report.html")
"""The files of a training."""


def training_files(session: Session) -> dict[str, bytes]:
    """The files that `tpucc train` writes, as bytes by name: the same for the same training, wherever and whenever it runs."""
    parts = parts_of(session.step)
    return session.files() | {"report.html": training_page(session, parts, picture_of(session.model, parts, session.source)).encode()}


def write_training(session: Session, folder: Path) -> tuple[str, ...]:
    """Writes these files into a folder, and returns their names. If the page can't be drawn, all others are written: they took longer."""
    try:
        files = training_files(session)
    except BaseException:
        write_files(folder, session.files())
        raise
    write_files(folder, files)
    return tuple(files)


def step_files(model: Model, step: Step, source: Source, time: StepTime, with_data: bool = False) -> dict[str, bytes]:
    """The files that `tpucc compile --train` writes; `time` is the step's."""
    drawn = picture_of(model, parts_of(step), source)
    texts = {
        "train.graph": stamped(print_graph(step.graph, with_data=with_data), "#"),
        "train.svg": painted(drawn.diagram, drawn.layout),
        "time.svg": step_time_svg(shown(model.graph.name), time),
        "train.dot": dot_source(drawn.diagram),
    }
    return {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}


def program_files(program: Program) -> dict[str, bytes]:
    """The program of a step as a listing and in binary, and its pictures."""
    drawn = {f"{kind}.svg": chart(program, time_program(program)) for kind, chart in PROGRAM_CHARTS.items()}
    texts = {"train.asm": stamped(disassemble(program), ";"), **drawn}
    return {"train.tpub": encode(program)} | {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}


def step_svg(model: Model, step: Step, source: Source) -> str:
    """The picture of a step as SVG."""
    drawn = picture_of(model, parts_of(step), source)
    return painted(drawn.diagram, drawn.layout)


def picture_of(model: Model, parts: Parts, source: Source) -> StepPicture:
    """The picture of a model's step."""
    assert model.training is not None
    assert model.training.optimizer is not None
    return step_picture(parts, model.graph.name, model.training.optimizer.name, source.text)


def measured(found: Mapping[Measure, float]) -> str:
    """The measure on the held-out set: an accuracy, or the root of the mean squared error."""
    if "accuracy" in found:
        return f"{100 * found['accuracy']:.2f} %"
    return f"RMSE {found['rmse']:.4g}" if "rmse" in found else ""
