"""The table of imported networks: the ONNX files of a folder are read, compiled, run, and compared with ONNX Runtime.

    python tests/support/torch_zoo.py FOLDER        # makes the files; needs the extra torch, and torchvision for all of them
    python benchmarks/imported.py FOLDER            # prints the rows; needs onnxruntime
    python benchmarks/imported.py FOLDER --write    # writes docs/reference/imported.md, too

Each file is measured in a process of its own, one after the other. One that can't be read or compiled ends the run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import tpucc
from tpucc.explain.noise import noise_of
from tpucc.explain.stats import stats
from tpucc.interop.onnx.reading import read
from tpucc.onnxruntime import session
from tpucc.runtime.check import compare_with_reference, float_reference, random_inputs

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "imported.md"
BATCH = 2
TORCHVISION = "torchvision_"
"""How the names of its networks begin."""
DTYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32, "tensor(bool)": np.bool_}
HEADS = (
    *("network", "nodes", "lines", "difference", "bit-equal", "signal, dB", "cycles", "host steps", "host cycles"),
    *("compile, s", "run, ms"),
)
INTRODUCTION = f"""\
<!-- made by benchmarks/imported.py; don't edit -->

# Imported networks

Networks that PyTorch exports, read by tpucc from [ONNX](../onnx.md), compiled for `tpu_v1`, and run. No file is changed, and no operator of
theirs is missing.

`python tests/support/torch_zoo.py FOLDER` writes the files: {{own}} small networks of its own, and {{theirs}} of torchvision, on images of
64 by 64 (Inception's 96 by 96). Their weights are random, and so are the inputs, which also calibrate the model. The batch is {BATCH} where
a file leaves it open. `python benchmarks/imported.py FOLDER --write` measures them, and writes this page.

| column | what it says |
|---|---|
| nodes | operators in the file |
| lines | of the source that `tpucc import` writes |
| difference | of the outputs in float32 from ONNX Runtime's, the largest, as a share of the output's largest magnitude |
| bit-equal | whether the device's integers are those of the layers' reference, all of them |
| signal | in 8 bits, against float32: the ratio to the noise in decibels, of the output that has least |
| cycles | of the machine, for the batch |
| host steps, host cycles | what the host computes between the device's parts, and its share of the cycles |
| compile, run | time of one processor: reading and compiling the file, in seconds; running it once, in milliseconds |

Times are those of one computer.
"""

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Row:
    """A network's figures. `difference` is the worst of the outputs, `signal` in dB, `compile` and `run` in seconds of the processor."""

    name: str
    nodes: int
    lines: int
    difference: float
    equal: bool
    signal: float
    cycles: int
    host_steps: int
    host_share: float
    compile: float
    run: float

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            *(
                self.name,
                f"{self.nodes:,}",
                f"{self.lines:,}",
                f"{self.difference:.0e}" if self.difference else "0",
                "yes" if self.equal else "**no**",
            ),
            *(f"{self.signal:.1f}", f"{self.cycles:,}", f"{self.host_steps:,}", f"{100 * self.host_share:.0f} %"),
            *(f"{self.compile:.1f}", f"{1000 * self.run:,.0f}"),
        )


def measured(path: Path) -> Row:
    """The row of a file. Raises what reading or compiling it raises."""
    found = read(path)
    sizes = dict.fromkeys(found.symbols, BATCH)
    begun = time.process_time()
    model = tpucc.import_onnx(path, params=sizes)
    exe = model.compile()
    compiled = time.process_time() - begun
    made, runtime = exe.compilation, exe.runtime
    assert made is not None
    assert made.meant is not None
    assert made.layers is not None
    inputs = random_inputs(runtime)
    reference = float_reference(made.meant, inputs)
    begun = time.process_time()
    outputs = exe.run(**inputs)
    ran = time.process_time() - begun
    figures = stats(runtime.program, runtime.timeline)
    return Row(
        path.stem,
        len(found.model.graph.nodes),
        len(model.source.splitlines()),
        difference(path, found.built(sizes).layouts, inputs, reference),
        not any(compared.unequal for compared in compare_with_reference(runtime, made.layers, inputs)),
        min(found.sqnr for found in noise_of(outputs, reference).values()),
        figures["cycles"],
        figures["host_steps"],
        figures["host_step_cycles"] / figures["cycles"],
        compiled,
        ran,
    )


def difference(path: Path, layouts: Mapping[str, tuple[int, ...]], inputs: Arrays, outputs: Arrays) -> float:
    """The worst of the outputs beside those of ONNX Runtime, as a share of the output's largest magnitude.

    `layouts` has the order that the axes of a value in the file have in the model.
    """
    judge = session(path, 1, optimised=False)
    given: Arrays = {
        port.name: (np.transpose(value, np.argsort(layouts[name])) if name in layouts else value).astype(DTYPES[port.type])
        for port, (name, value) in zip(judge.get_inputs(), inputs.items(), strict=True)
    }
    worst = 0.0
    for (name, value), wanted in zip(outputs.items(), judge.run(None, given), strict=True):
        expected = np.transpose(wanted, layouts[name]) if name in layouts else wanted
        worst = max(worst, float(np.abs(value - expected).max()) / max(float(np.abs(expected).max()), 1e-6))
    return worst


def rows(folder: Path) -> Iterator[Row]:
    """From the smallest file to the largest."""
    files = sorted(folder.glob("*.onnx"), key=lambda path: path.stat().st_size)
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for row in pool.map(measured, files):
            print(_line(row.cells), flush=True)
            yield row


def page(found: Iterable[Row]) -> str:
    """Those of the zoo, then those of torchvision, by name."""
    parts: tuple[list[Row], list[Row]] = ([], [])
    for row in sorted(found, key=lambda row: row.name):
        parts[row.name.startswith(TORCHVISION)].append(row)
    own, theirs = (_table(part) for part in parts)
    introduction = INTRODUCTION.format(own=len(parts[0]), theirs=len(parts[1]))
    return f"{introduction}\n## Small networks\n\n{own}\n\n## torchvision's\n\n{theirs}\n"


def _table(part: Iterable[Row]) -> str:
    named = (replace(row, name=row.name.removeprefix(TORCHVISION)) for row in part)
    return "\n".join([_line(HEADS), "|---|" + "--:|" * (len(HEADS) - 1), *(_line(row.cells) for row in named)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    made = page(rows(Path(arguments[0])))
    if "--write" in arguments:
        PAGE.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
