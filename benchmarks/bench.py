"""Measures tpucc: execution against NumPy, and compile speed by size. `make bench` runs it, and writes its output into docs/performance.md.

Times are of this machine; what counts are the ratios. Each pair of figures is measured in turn, run by run, in one process, and the
smallest of each is taken: noise only ever adds. Everything runs on one thread. What is compared is processor time, which other programs
on the machine disturb least.
"""

# ruff: noqa: E402 threads are set before NumPy is imported

from __future__ import annotations

import argparse
import io
import os
import re
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"  # before NumPy is imported

import im2col
import lstm
import numpy as np
from against import compare

import tpucc
from tpucc.api import Executable
from tpucc.runtime.check import random_inputs
from tpucc.sim.stats import stats
from tpucc.sim.timing import time_program
from tpucc.viz.artifacts import artifacts

CHAIN = """
param batch = 200
param width = 2000
param layers = 5
weights random(seed=0)
model chain(x: f32[batch, width]):
    for i in range(layers):
        weight w: f32[width, width] = "w{i}"
        x = relu(x @ w)
    return x
"""
PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
RESNET = PROGRAMS / "11_resnet50.tpu"
SIZES = (2, 20, 200, 2000, 20000)
"""Layers of one tile: each makes about five instructions."""
ROUNDS = 15


def fastest(*functions: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """The least time of each function, in seconds; they run in turn, after one run each to warm up."""
    for function in functions:
        function()
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for index, function in enumerate(functions):
            started = time.process_time()
            function()
            best[index] = min(best[index], time.process_time() - started)
    return best


def weights_of(exe: Executable) -> list[np.ndarray]:
    return [node.attributes.value.data for node in exe.graph.nodes if node.op == "constant"]


def execution() -> None:
    """Five 2000×2000 layers at batch 200, bit-exact in 8 bits with everything around it, against the bare float32 products."""
    exe = tpucc.compile_source(CHAIN)
    weights = weights_of(exe)
    x = np.random.default_rng(0).standard_normal((200, 2000), np.float32)

    def float_chain() -> np.ndarray:
        y = x
        for w in weights:
            y = y @ w
        return y

    ports = exe.runtime._prologue({"x": x})
    integers = exe.with_backend("onnxruntime")
    ours, device, plain, eight = fastest(
        lambda: exe.run(x=x), lambda: exe.runtime.simulator.run(ports), float_chain, lambda: integers.run(x=x)
    )
    interpreted, _ = fastest(lambda: exe.runtime.ports({"x": x}, plain=True), float_chain, rounds=3)
    print("execution: five 2000×2000 layers, batch 200")
    print(f"  float32 products in NumPy    {1000 * plain:8.2f} ms   1.00")
    print(f"  tpucc, float in to float out {1000 * ours:8.2f} ms   {ours / plain:.2f}")
    print(f"  tpucc, the device's part     {1000 * device:8.2f} ms   {device / plain:.2f}")
    print(f"  tpucc, backend onnxruntime   {1000 * eight:8.2f} ms   {eight / plain:.2f}")
    print(f"  instruction by instruction   {1000 * interpreted:8.2f} ms   {interpreted / plain:.2f}")


def networks() -> None:
    """A recurrent and a convolutional network, from float to float, against plain float32 forwards."""
    exe = tpucc.compile(PROGRAMS / "10_imdb_lstm.tpu")
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    data = [node.attributes.value.data for node in exe.compilation.graph.nodes if node.op == "constant"]
    by_shape = {array.shape: array for array in data}
    shapes = {"lstm.kernel": (32, 400), "lstm.recurrent": (100, 400), "lstm.bias": (400,), "fc.kernel": (100, 1), "fc.bias": (1,)}
    weights, table = {name: by_shape[shape] for name, shape in shapes.items()}, by_shape[15000, 32] * np.float32(86.6)
    ids = random_inputs(exe.runtime)["ids"]
    ours, plain = fastest(lambda: exe.run(ids=ids), lambda: lstm.forward(weights, table, ids))
    print("LSTM of 100 units, 250 steps, batch 8")
    print(f"  float32 in NumPy             {1000 * plain:8.2f} ms   1.00")
    print(f"  tpucc, float in to float out {1000 * ours:8.2f} ms   {ours / plain:.2f}")
    exe = tpucc.compile(PROGRAMS / "09_cifar_resnet.tpu")
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    graph, images = exe.compilation.graph, random_inputs(exe.runtime)
    ours, plain = fastest(lambda: exe.run(images), lambda: im2col.forward(graph, images))
    print("ResNet-20, batch 8")
    print(f"  float32 im2col in NumPy      {1000 * plain:8.2f} ms   1.00")
    print(f"  tpucc, float in to float out {1000 * ours:8.2f} ms   {ours / plain:.2f}")


def compiling() -> None:
    """Compile and timing speed as functions of the number of instructions; linear means that the speed stays."""
    print("compile: chains of one-tile layers")
    print(f"  {'instructions':>12} {'compile s':>10} {'per s':>10} {'timing s':>10} {'per s':>10}")
    for layers in SIZES:
        started = time.perf_counter()
        exe = tpucc.compile_source(CHAIN, params={"batch": 8, "width": 16, "layers": layers})
        compiled = time.perf_counter() - started
        count = len(exe.runtime.program.instructions)
        timed = fastest(lambda program=exe.runtime.program: time_program(program), rounds=3)[0]
        print(f"  {count:12,} {compiled:10.3f} {count / compiled:10,.0f} {timed:10.4f} {count / timed:10,.0f}")


def tiles() -> None:
    """Few layers of many tiles: the time per instruction is smaller, because layers cost more than tiles."""
    print("compile: five layers of many tiles, without drawing their weights")
    print(f"  {'instructions':>12} {'compile s':>10} {'per s':>10}")
    for width in (256, 1024, 4096):
        started = time.perf_counter()
        exe = tpucc.compile_source(CHAIN, params={"batch": 200, "width": width, "layers": 5})
        drawing = next(s.seconds for s in exe.compilation.snapshots if s.stage == "weights") if exe.compilation else 0.0
        compiled = time.perf_counter() - started - drawing
        count = len(exe.runtime.program.instructions)
        print(f"  {count:12,} {compiled:10.3f} {count / compiled:10,.0f}")


def resnet() -> None:
    """ResNet-50 at batch 1: compiled from the source, run from float to float, against the plain float32 forward by im2col."""
    exe, compiled = timed(lambda: tpucc.compile(RESNET, params={"batch": 1}))
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    graph = exe.compilation.graph
    inputs = random_inputs(exe.runtime)
    ours, plain = fastest(lambda: exe.run(inputs), lambda: im2col.forward(graph, inputs), rounds=5)
    print(f"ResNet-50, batch 1, {len(exe.runtime.program.instructions):,} instructions")
    print(f"  float32 im2col in NumPy      {1000 * plain:8.2f} ms   1.00")
    print(f"  tpucc, float in to float out {1000 * ours:8.2f} ms   {ours / plain:.2f}")
    print(f"  compiling                    {1000 * compiled:8.2f} ms   {compiled / plain:.2f}")


def million() -> None:
    """A program of a million instructions, of all engines: the chain's own, again and again. How long its timeline and numbers take."""
    exe = tpucc.compile_source(CHAIN, params={"batch": 8, "width": 16, "layers": 2000})
    program = exe.runtime.program
    again = -(-1_000_000 // len(program.instructions))
    long = replace(program, instructions=np.tile(program.instructions, again), layer_of=np.tile(program.layer_of, again))
    timeline = time_program(long)
    timing, counting = fastest(lambda: time_program(long), lambda: stats(long, timeline), rounds=3)
    print(f"timing {len(long.instructions):,} instructions")
    print(f"  the timeline                 {timing:8.2f} s")
    print(f"  the numbers made from it     {counting:8.2f} s")


def reports() -> None:
    """Pages beside the compilations that they show: seconds, and the size of the file."""
    print("reports: drawing and writing the page, beside compiling")
    print(f"  {'program':<18} {'instructions':>12} {'compile s':>10} {'page s':>8} {'ratio':>6} {'MB':>6}")
    for name in ("05_digits_cnn", "11_resnet50", "10_imdb_lstm"):
        exe, compiled = timed(lambda name=name: tpucc.compile(PROGRAMS / f"{name}.tpu"))
        assert exe.compilation is not None
        started = time.perf_counter()
        made = artifacts(exe.compilation, exe.runtime, name, ("report",)).files["report.html"]
        drawn, count = time.perf_counter() - started, len(exe.runtime.program.instructions)
        print(f"  {name:<18} {count:12,} {compiled:10.2f} {drawn:8.2f} {drawn / compiled:6.2f} {len(made) / 1e6:6.2f}")


def beside(other: Path) -> None:
    """Compile times of long programs beside those of another checkout."""
    with TemporaryDirectory() as folder:
        chain = Path(folder) / "chain.tpu"
        chain.write_text(CHAIN, "utf-8")
        compare(
            other,
            {
                "LSTM, 8 steps": (PROGRAMS / "06_digits_lstm.tpu", {}),
                "LSTM, 250 steps": (PROGRAMS / "10_imdb_lstm.tpu", {}),
                "chain of 1,000 layers": (chain, {"batch": 8, "width": 16, "layers": 1000}),
                "ResNet-20, batch 256": (PROGRAMS / "09_cifar_resnet.tpu", {"batch": 256}),
            },
        )


def with_output(page: str, part: str, output: str) -> str:
    """The page with what a part has printed between its marks; without marks, as it is."""
    marks = re.compile(rf"(<!-- bench {part} -->\n).*?(<!-- end -->)", re.DOTALL)
    return marks.sub(lambda found: f"{found[1]}```text\n{output}```\n{found[2]}", page)


def timed(function: Callable[[], Executable]) -> tuple[Executable, float]:
    """What a function gives, and the seconds it took."""
    started = time.perf_counter()
    return function(), time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    functions = (execution, networks, compiling, tiles, resnet, reports, million)
    parts = {function.__name__: function for function in functions}
    parser.add_argument("part", nargs="?", choices=tuple(parts), help="only this part")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="compare compile times with another checkout instead")
    parser.add_argument("--write", action="store_true", help="put the output into docs/performance.md")
    options = parser.parse_args()
    if options.against is not None:
        beside(options.against)
        return
    for name, function in parts.items():
        if options.part in (None, name):
            output = io.StringIO()
            with redirect_stdout(output):
                function()
            print(output.getvalue(), end="", flush=True)
            if options.write:
                PAGE.write_text(with_output(PAGE.read_text("utf-8"), name, output.getvalue()), "utf-8")


if __name__ == "__main__":
    main()
