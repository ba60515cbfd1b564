"""Regenerates what in docs/ is made from the code: reference pages, outputs, pictures. `make docs` runs it.

`python docs/generate.py --check` writes nothing, and fails when a page is not what the code says. It takes some minutes, for it
compiles every program in many ways. `--help` names the parts that take less.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path

from assumptions_page import assumptions_page, with_sources
from dataflow_pictures import DATAFLOWS, dataflow_svg
from float_pictures import bits_svg, halving_svg
from instructions_page import instructions_page, training_instructions_page
from labs_page import labs_page
from marks_page import marks_page
from measure import programs_as_they_stand, programs_page, row_heads
from notebook_page import executed
from onnx_operators import onnx_operators_page
from paper_page import paper_page, targets_page
from screenshots import take_screenshots
from sweep_pictures import figure_svg
from terminal_blocks import BLOCK, as_typed, folder, printed, with_outputs
from training_page import host_cells, quick_patterns, training_page
from tree_picture import tree_svg
from worked_page import worked_pages

import tpucc
from tpucc.explain.codes import codes, explain
from tpucc.explain.fidelity import fidelity
from tpucc.explain.life import Life, life
from tpucc.interop.onnx.writing.words import documented, in_words
from tpucc.isa.verify import RULES
from tpucc.labs.allocation.drawing import lives_svg
from tpucc.ops import INTERNAL, OPS
from tpucc.ops.opdef import Arithmetic, Boundary, Clamp, Given, Legalisation, Matrix, OnHost, Pooling, Rearrangement, Table, View
from tpucc.passes.base import options_of
from tpucc.passes.pipeline import PASSES
from tpucc.see import pictures
from tpucc.see.charts.life import life_svg
from tpucc.see.charts.textcharts import Canvas, buffer_lines, plain, timeline_lines
from tpucc.see.waves import random_work, waves_svg
from tpucc.sim.timing import time_program
from tpucc.training.passes.pipeline import TRAINING_PASSES

DOCS = Path(__file__).resolve().parent
PROGRAMS = DOCS.parent / "programs"
MEASURED, PAPER, TRAINED = "reference/programs.md", "reference/paper.md", "reference/training.md"
ASSUMPTIONS = "reference/assumptions.md"
MARKS = "instructors/marks.md"
WITH_COMMANDS = (
    "systolic.md",
    "front-end.md",
    "cli.md",
    "tpu.md",
    "quantisation.md",
    "calibration.md",
    "scheduling.md",
    "allocation.md",
    "pass.md",
    "gradients.md",
    "step-time.md",
    "training-machine.md",
    "sweeps.md",
    *(["rtl.md"] if importlib.util.find_spec("pyrtl") else []),
)
"""Pages whose commands take seconds. PyRTL, which one of them needs, isn't there where tpucc alone is installed: a test runs that page."""
TRAINING = ("parallel.md", "train-then-infer.md")
"""Pages whose commands train for some seconds."""
GRADED = "coursework.md"
"""A page whose commands grade a class, which takes half a minute."""
PROCESSES = 2
"""In which `pages` are made side by side, those that take longest first."""
MADE = "<!-- made by docs/generate.py; don't edit -->\n"


def operators_page() -> str:
    parts = [MADE, "# Operators\n", "Images are NHWC and kernels HWIO, as in Keras. Attributes stand after the operands, in this order.\n"]
    for name, op in OPS.items():
        if name not in INTERNAL:
            says = f"*{where(op.legalisation)}* *{in_words(op)}*"
            parts.append(f"## {name}\n\n`{op.signature}`\n\n{op.summary}.\n\n{documented(op)}\n\n{says}\n")
    return "\n".join(parts)


WHERE: Mapping[type, str] = {
    Matrix: "A product on the device: an FC or a convolutional layer.",
    Pooling: "A pooling layer on the device.",
    Table: "On the device a table of 256 entries: in the layer before, or a vector layer of its own.",
    Clamp: "On the device a clamp in the layer before, which costs nothing.",
    Arithmetic: "A vector layer on the device; a constant is folded into the layer before where that is possible.",
    View: "Moves nothing on the device as long as the last size stays; otherwise runs on the host.",
    Rearrangement: "Rows are walked in another way, or copied by the vector unit; lanes go through the matrix unit. Lanes become rows, or "
    "rows lanes, on the host only.",
    Boundary: "Says how a value is represented; moves nothing.",
    Given: "A constant of the program.",
}
"""In words, where operators of a kind run."""


def where(legalisation: Legalisation) -> str:
    """In words, where an operator runs."""
    return f"Runs on the host: {legalisation.why}." if isinstance(legalisation, OnHost) else WHERE[type(legalisation)]


def errors_page() -> str:
    pages = [text.replace("\n## ", "\n### ") for code in codes() if (text := explain(code)) is not None]
    return MADE + "\n# Errors\n\n" + "\n\n".join("#" + page.strip() for page in pages) + "\n"


def passes_page() -> str:
    parts = [MADE, "# Passes\n", "In the order in which they run.\n", "| pass | runs at | does | options |", "|---|---|---|---|"]
    for step in PASSES:
        options = ", ".join(f"`{option}` ({default})" for option, default in options_of(step).items())
        level = f"-O{step.level}" if step.level else "every level"
        parts.append(f"| `{step.name}` | {level} | {step.summary} | {options} |")
    parts += [
        "\n## Of training\n",
        "From the loss that `train` returns to the graph of one step, in this order: `tpucc compile --train`.\n",
    ]
    parts += ["| pass | does | in full |", "|---|---|---|"]
    for step in dict.fromkeys(TRAINING_PASSES):
        parts.append(f"| `{step.name}` | {step.summary} | {' '.join((step.__doc__ or '').split('Raises')[0].split())} |")
    return "\n".join(parts) + "\n"


def verifier_page() -> str:
    intro = "Nothing executes that breaks one of them. `tpucc explain V0301` shows a short program that does, and its mend.\n"
    parts = [MADE, "# The verifier's rules\n", intro, "| code | rule | says |", "|---|---|---|"]
    parts += [f"| {rule.code} | {rule.name} | {rule.description} |" for rule in RULES.values()]
    return "\n".join(parts) + "\n"


def charts_page() -> str:
    """What `tpucc profile --chart` prints of two programs."""
    parts = [MADE, "# Charts at the terminal\n", CHARTS]
    for name, says in CHARTED.items():
        runtime = tpucc.compile(PROGRAMS / f"{name}.tpu").runtime
        times, canvas = pictures.times_of(runtime), Canvas(runtime.timeline.makespan, runtime.program.target.clock_hz)
        lines = [*timeline_lines(runtime.program, times, canvas), (), *buffer_lines(runtime.program, times, canvas)]
        parts.append(f"## {name}\n\n{says}\n\n```\n" + "\n".join(map(plain, lines)) + "\n```\n")
    return "\n".join(parts)


CHARTS = """\
`tpucc profile MODEL.tpu` prints them below its table on a terminal, `--chart` anywhere, `--no-chart` nowhere. A column is the same
number of cycles everywhere. A block is as high as the share of these cycles in which the unit works; `waits` has the letter of what
the matrix unit waits for most, a capital where waiting takes more than half of the column. At the right is each line's share of the
whole time. A layer's name stands where its time begins, waits for its inputs and weights included: the table of layers counts the
same cycles. The buffer's chart has the most rows in use at once in each column, and ends at the most of all.
"""
CHARTED = {
    "04_digits_mlp": "At first it waits for inputs from the host, then a little between the layers; at the end the results leave.",
    "05_digits_cnn": "The host brings one half of the batch while the machine computes the other. The matrix unit waits mostly "
    "for the host, and for the activation unit, which copies the images into their border as they arrive.",
    "06_digits_lstm": "One product for the inputs of all steps, then step after step: each waits for the one before, and for weights.",
}
"""Programs with charts in the book, and what there is to see."""


def pages(trained_on_host: Mapping[str, str] | None) -> Mapping[str, str]:
    """The generated pages by path below docs/, and those with outputs in them; without that of training, which takes minutes, for None."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        measured = {MEASURED: pool.submit(programs_page), ASSUMPTIONS: pool.submit(assumptions_page)}
        if trained_on_host is not None:
            measured[TRAINED] = pool.submit(training_page, trained_on_host)
        if (PROGRAMS / "paper").is_dir():
            measured[PAPER] = pool.submit(paper_page)
        measured[MARKS] = pool.submit(marks_page)
        written = {page: pool.submit(with_outputs, text_of(page), page) for page in (GRADED, *TRAINING)}
        quick = pool.submit(quick_pages)
    whole = {path: made.result() for path, made in written.items()}
    return quick.result() | whole | {path: f"{MADE}\n{made.result()}" for path, made in measured.items()}


def usual_pages() -> tuple[Mapping[str, str], str]:
    """Those that are made in seconds with the pictures, and the beginning of the page of measured figures: every program as it stands."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        measured, quick, drawn = map(pool.submit, (programs_as_they_stand, quick_pages, picture_files))
    return {**quick.result(), **drawn.result()}, f"{MADE}\n{measured.result()}"


def tables() -> Mapping[str, str]:
    """Those that are read off the code, and run nothing."""
    return {
        "reference/operators.md": operators_page(),
        "reference/errors.md": errors_page(),
        "reference/passes.md": passes_page(),
        "reference/verifier.md": verifier_page(),
        "reference/targets.md": f"{MADE}\n{targets_page()}",
        "reference/instructions.md": MADE + "\n" + instructions_page(),
        "reference/training-instructions.md": MADE + "\n" + training_instructions_page(),
        "reference/labs.md": f"{MADE}\n{labs_page()}",
        ASSUMPTIONS: f"{MADE}\n{with_sources(text_of(ASSUMPTIONS))}",
        **worked_pages(),
    }


def quick_pages() -> Mapping[str, str]:
    """Those that are made in seconds."""
    return {
        **tables(),
        "reference/charts.md": charts_page(),
        "reference/onnx.md": f"{MADE}\n{onnx_operators_page()}",
        **{page: with_outputs(text_of(page), page) for page in WITH_COMMANDS},
    }


def drawings() -> Iterator[tuple[str, str]]:
    """The pictures of the book, by name: from the digits networks; those of errors from the one that has convolutions."""
    exe = tpucc.compile(PROGRAMS / "04_digits_mlp.tpu")
    shown = {"graph": exe.graph, "layers": exe.layers, "tiles": exe.tiles, "program": exe.program}
    shown |= {"memory": exe.memory, "timeline": exe.timeline}
    for name, value in shown.items():
        yield f"digits-{name}", value._repr_svg_()
    yield "digits-roofline", pictures.roofline_of(exe.runtime)
    cnn = tpucc.compile(PROGRAMS / "05_digits_cnn.tpu")
    yield "cnn-layers", cnn.layers._repr_svg_()
    assert cnn.compilation is not None
    errors = fidelity(cnn.compilation, cnn.runtime)
    for kind, draw in pictures.LOSSES.items():
        yield f"cnn-{kind}", draw(cnn.runtime.program.title, errors)
    yield "systolic", waves_svg(random_work(4, 4, 6))
    for kind in DATAFLOWS:
        yield f"dataflow-{kind}", dataflow_svg(kind)
    yield from chapter_pictures()


def picture_files() -> Mapping[str, str]:
    return {f"pictures/{name}.svg": svg for name, svg in drawings()}


def chapter_pictures() -> Iterator[tuple[str, str]]:
    """Pictures of what the reader types in a chapter, by name."""
    with as_typed(text_of("first-model.md")):
        first = tpucc.compile("first.tpu")
        yield "first-timeline", first.timeline._repr_svg_()
        yield "first-tiles", first.tiles._repr_svg_()
        assert first.compilation is not None
        lived = life(first.compilation, first.runtime)
        assert isinstance(lived, Life)
        yield "first-byte", life_svg(first.runtime.program, lived, first.runtime.timeline.makespan)
    with as_typed(text_of("quantisation.md")):
        yield "sensor-layers", tpucc.compile("sensor.tpu").layers._repr_svg_()
    with as_typed(text_of("scheduling.md")):
        yield "two-timeline", tpucc.compile("two.tpu", target="tiny").timeline._repr_svg_()
    with as_typed(text_of("allocation.md")) as names:
        for name, allocate in {"first-fit": names["first_fit"], "largest-first": tpucc.Stages().allocate}.items():
            starts = allocate(names["lives"], 100)
            words = f"{name.replace('-', ' ')}: {names['lives'].peak(starts)} rows; time to the right"
            yield name, lives_svg(names["lives"], starts, words)
    with as_typed(text_of("front-end.md")) as names:
        yield "statement-tree", tree_svg("return x @ w + b", names["statement"], tpucc.compile("net.tpu").graph.value)
    with as_typed(text_of("pass.md")) as names:
        before = tpucc.compile("deep.tpu").graph.value
        yield "merge-before", pictures.graph_svg(before)
        after = names["Rewriter"](before, "merge-products").rewrite(names["merge"])
        yield "merge-after", pictures.graph_svg(after, "What merge-products made of the graph")
    with as_typed(text_of("gradients.md")):
        for name, stem in {"tiny": "tiny", "digits": "04_digits_mlp"}.items():
            yield f"{name}-step", Path("build", stem, "train.svg").read_text("utf-8")
    with as_typed(text_of("training-machine.md")) as names:
        yield "layer-by-hand", pictures.PROGRAM_CHARTS["timeline"](names["program"], time_program(names["program"]))
        yield "digits-step-timeline", Path("build", "04_digits_mlp", "timeline.svg").read_text("utf-8")
    yield "figure-11", figure_svg()
    yield "float-bits", bits_svg()
    yield "halving", halving_svg()
    if "rtl.md" in WITH_COMMANDS:
        from unit_pictures import units_svg

        yield "rtl-units", units_svg()
    attempts = [block["text"] for block in BLOCK.finditer(text_of(GRADED)) if "def allocate(lives, rows)" in block["text"]]
    with folder():
        printed("lab start 5 lab5 --term spring")
        for name, attempt in zip(("first", "mended"), attempts, strict=False):
            Path("lab5/allocation.py").write_text(attempt, "utf-8")
            printed("lab check lab5 --only 'random lives'")
            yield f"lab5-{name}", Path("lab5/check/random_lives.svg").read_text("utf-8")


def text_of(page: str) -> str:
    return (DOCS / page).read_text("utf-8")


def run_notebook() -> str:
    """Executes the example notebook where there is a kernel for it; says what was done."""
    if importlib.util.find_spec("nbclient") is None:
        return "; the notebook is as it was, as nbclient is not installed"
    path = DOCS / "notebook.ipynb"
    path.write_text(executed(path), "utf-8")
    return ", and so is the notebook"


def stale(made: Mapping[str, str]) -> Iterator[str]:
    """The pages that aren't as they are made now."""
    yield from (path for path, text in made.items() if not (DOCS / path).is_file() or (DOCS / path).read_text("utf-8") != text)


def missing_rows() -> Iterator[str]:
    """The page of measured figures, where a program is missing."""
    yield from (f"{MEASURED}, at {row}," for row in row_heads() if row not in text_of(MEASURED))


def stale_patterns() -> Iterator[str]:
    """The page of training, where what is computed without training isn't what it is now."""
    yield from (f"{TRAINED}, at {pattern}," for pattern in quick_patterns() if not re.search(pattern, text_of(TRAINED)))


def stale_usual() -> Iterator[str]:
    """Of the pages that `usual_pages` makes."""
    made, figures = usual_pages()
    yield from stale(made)
    if not text_of(MEASURED).startswith(figures):
        yield MEASURED


def wrong_pages(options: Namespace) -> Iterator[str]:
    """What is not as the code says, of the pages that the options name."""
    if options.usual:
        return chain(stale_usual(), stale_patterns())
    if options.tables:
        return chain(stale(tables()), missing_rows())
    if options.quick:
        return chain(stale(quick_pages()), missing_rows())
    known = host_cells(text_of(TRAINED)) if options.trained else None
    return chain(stale(pages(known)), stale_patterns(), stale(picture_files()))


def check(options: Namespace) -> int:
    found = list(wrong_pages(options))
    part = next((f"python docs/generate.py --{part}" for part in ("tables", "quick") if getattr(options, part)), "make docs")
    print("\n".join(f"docs/{path} is not what the code says; run {part}" for path in found))
    return 1 if found else 0


def write(options: Namespace) -> int:
    made = tables() if options.tables else quick_pages() if options.quick else {**pages({}), **picture_files()}
    for folder_name in ("reference", "pictures"):
        (DOCS / folder_name).mkdir(exist_ok=True)
    changed = list(stale(made))
    for path in changed:
        (DOCS / path).write_text(made[path], "utf-8")
    print("".join(f"wrote docs/{path}\n" for path in changed), end="")
    if options.tables or options.quick:
        print(f"{len(made)} pages are up to date; make docs makes the others, and the pictures")
        return 0
    print(f"{len(made)} pages and pictures are up to date{run_notebook()}; {take_screenshots()}")
    return 0


def main() -> int:
    parser = ArgumentParser(description="Makes the pages and pictures of docs/ that are made from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail when a page is not what the code says")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--tables", action="store_true", help="only the pages that are read off the code")
    some.add_argument("--quick", action="store_true", help="only the pages that are made in seconds: no measured figure, no picture")
    some.add_argument("--usual", action="store_true", help="with --check: those, every program's figures as it stands, and the pictures")
    some.add_argument("--trained", action="store_true", help="with --check: train the programs too, which takes minutes")
    options = parser.parse_args()
    return check(options) if options.check else write(options)


if __name__ == "__main__":
    sys.exit(main())
