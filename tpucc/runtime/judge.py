"""The verdict on a compiled model: whether its values are right and its program is valid, and its cycles and rows.

Comparisons, each with a fault that only it finds:

- *integers*: every output of the device against the integer reference of the layers, exactly. This finds a wrong stage after the layer
  graph.
- *ONNX Runtime*, where the user wants it: the integers of a library that shares no code with tpucc. This would find a fault in the
  reference itself.

Whoever lets users' passes and edited texts into a compilation gives further comparisons (`tpucc.plugins.judged`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from tpucc.compilation import Compilation
from tpucc.diagnostics import Diagnostic, Error, UsageError
from tpucc.ir import Graph
from tpucc.isa.effects import effects
from tpucc.isa.listing.instructions import instruction_text
from tpucc.isa.program import Program
from tpucc.isa.verify import verify
from tpucc.numerics import AnyArray
from tpucc.runtime.batches import Arrays
from tpucc.runtime.check import (
    Comparison,
    calibrated_inputs,
    compare_executors,
    compare_with_reference,
    random_inputs,
)
from tpucc.runtime.runtime import Runtime
from tpucc.sim.ports import column_blocks


@dataclass(frozen=True)
class OutsideJudge:
    """A library that computes the same layers and shares no code with tpucc: its name, its title in messages, and the comparison of every
    output of the device with its results."""

    name: str
    title: str
    compare: Callable[[Runtime, Graph, Mapping[str, AnyArray]], list[Comparison]]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first unequal value: its place, the expected and the found value, and the instruction that computed it, if it is known.

    `instruction` and `text` are of the machine program, `line` is the line of the source, `stage` is the pass or the comparison that found
    it. `place` is the instruction's line in the text that was judged, as in `iris.tile:37`.
    """

    where: str
    expected: float
    found: float
    stage: str
    instruction: int | None = None
    text: str = ""
    layer: str = ""
    line: int = 0
    place: str = ""

    def __str__(self) -> str:
        made = f"; made by instruction {self.instruction:,} `{self.text}` of {self.layer}" if self.instruction is not None else ""
        line = (f", {self.place}" if self.place else "") + (f", line {self.line} of the model" if self.line else "")
        return f"{self.where}: expected {self.expected:g}, found {self.found:g} ({self.stage}){made}{line}"


Further = Callable[[Runtime, Compilation, Arrays], Iterator[Difference]]
"""Further comparisons of a compiled model on one case of inputs: a function that gives the first difference of each comparison."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`equal` says that every comparison holds and that there are no findings. `first_difference` is of the first comparison that fails.

    `peak_rows` is the largest number of rows of the unified buffer in use at one time. `lower_bound` is the largest number alive at one
    time; no allocation can use fewer. Both and `cycles` are 0 if no program was made. `findings` are the findings of the verifier.
    """

    equal: bool
    first_difference: Difference | None
    cycles: int
    peak_rows: int
    lower_bound: int
    findings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    """The notes of scheduling: about an allocator that found no rows, and about spilled rows."""
    against: str | None = None
    """The name of the library that the integers were also compared with."""


def refused(error: Error) -> Verdict:
    """The verdict on a model for which the user's passes or stages made no program."""
    return Verdict(False, None, 0, 0, 0, error.diagnostics)


def judge(
    runtime: Runtime,
    compilation: Compilation | None,
    inputs: Mapping[str, npt.ArrayLike] | None = None,
    seed: int = 0,
    outside: OutsideJudge | None = None,
    further: Further | None = None,
) -> Verdict:
    """The verdict on a program, for `inputs` or else for the calibration inputs, and for random inputs from `seed`.

    A program without its compilation has no layers to compare with: the fast executor is compared with the plain one. Raises `InputError`
    when `inputs` don't fit, and `UsageError` E0515 where an `outside` judge has no layers to compute.
    """
    program = runtime.program
    findings = tuple(Diagnostic(found.code, found.message) for found in verify(program))
    cases = _cases(runtime, compilation, inputs, seed)
    differences = chain(
        _differences(runtime, compilation, cases, further), _outside(runtime, compilation, cases, outside) if outside else ()
    )
    difference = None if findings else next(differences, None)
    return Verdict(
        not findings and difference is None,
        difference,
        0 if findings else runtime.timeline.makespan,
        program.peak_rows,
        program.lower_bound_rows,
        findings,
        program.notes,
        outside.name if outside and not findings else None,
    )


def _cases(
    runtime: Runtime, compilation: Compilation | None, inputs: Mapping[str, npt.ArrayLike] | None, seed: int
) -> list[dict[str, AnyArray]]:
    """The cases of inputs: one batch of the given inputs or of the calibration inputs, and a batch of random inputs."""
    given = runtime.accepted(inputs) if inputs is not None else calibrated_inputs(compilation) if compilation else None
    cases = [random_inputs(runtime, seed)]
    if given is None:
        return cases
    batch = runtime.batch
    rows = {name: array if batch is None else np.resize(array, (batch, *array.shape[1:])) for name, array in given.items()}
    return [rows, *cases]


def _differences(
    runtime: Runtime, made: Compilation | None, cases: list[dict[str, AnyArray]], further: Further | None
) -> Iterator[Difference]:
    """The first difference of each comparison that has one."""
    for inputs in cases:
        if made is None or made.layers is None or made.graph is None:
            comparisons = compare_executors(runtime, inputs)
        else:
            comparisons = compare_with_reference(runtime, made.layers, inputs)
        for compared in comparisons:
            if compared.unequal:
                yield _of_device(runtime.program, made, compared)
        if made is not None and further is not None:
            yield from further(runtime, made, inputs)


def _outside(runtime: Runtime, made: Compilation | None, cases: list[dict[str, AnyArray]], outside: OutsideJudge) -> Iterator[Difference]:
    """The first difference of each output from the outside judge's."""
    if made is None or made.layers is None:
        raise UsageError(Diagnostic("E0515", "a program that was loaded has no layers to judge by; compile the source to see them"))
    for inputs in cases:
        for compared in outside.compare(runtime, made.layers, inputs):
            if compared.unequal:
                yield _of_device(runtime.program, made, compared, outside.title)


def _of_device(
    program: Program, made: Compilation | None, compared: Comparison, stage: str = "the layers' integer reference"
) -> Difference:
    maker = maker_of(program, compared.name, compared.index)
    place = made.places.line(maker.instruction) if maker is not None and made is not None and made.places is not None else ""
    where = f"{compared.name}{list(compared.index)}"
    return Difference(where, compared.expected, compared.got, stage, **(asdict(maker) if maker is not None else {}), place=place)


# Finds the instruction that computed a value that the device returned.


@dataclass(frozen=True, slots=True)
class Maker:
    """An instruction of the program: its number, its text, its layer's name, and the layer's line of the source (0 where there is none)."""

    instruction: int
    text: str
    layer: str
    line: int


def maker_of(program: Program, port: str, index: tuple[int, ...]) -> Maker | None:
    """The last instruction that wrote the row of the unified buffer from which an element of an output went to the host.

    `index` is the element's index in the port's shape. None where no instruction wrote the row.
    """
    row = _host_row(program, port, index)
    touched, code = effects(program.instructions), program.instructions
    sent = np.flatnonzero(touched.host_writes & (touched.host.low <= row) & (row < touched.host.high))
    if not len(sent):
        return None
    transfer = int(sent[-1])
    source = int(code["ub"][transfer]) + row - int(touched.host.low[transfer])
    covers = (touched.target.low[:transfer] <= source) & (source < touched.target.high[:transfer])
    makers = (i for i in np.flatnonzero(covers)[::-1].tolist() if touched.target.dense[i] or source in touched.target.rows(i))
    made = next(makers, None)
    if made is None:
        return None
    layer = program.layers[int(program.layer_of[made])]
    return Maker(made, instruction_text(program.machine, code[made]), layer.name, layer.origin.line)


def _host_row(program: Program, port: str, index: tuple[int, ...]) -> int:
    """The row of host memory that holds an element of an output; of a 16-bit element, its low byte."""
    output = next(output for output in program.outputs if output.name == port)
    row, column = divmod(int(np.ravel_multi_index(index, output.shape)) if index else 0, output.shape[-1])
    blocks = column_blocks(output, program.host, program.target.mxu)
    rows, stretch = next((rows, stretch) for rows, columns, stretch in blocks if row < rows.stop and column < columns.stop)
    return int(stretch.start + (row - rows.start) * output.format.bytes_per_value)
