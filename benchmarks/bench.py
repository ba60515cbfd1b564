"""Measures tpucc: execution against NumPy, and compile speed by size. `make bench` runs it, and writes its output into docs/performance.md.

Times are of this machine; the ratios carry over to others. Figures that are compared are measured in turn, run by run, in one process. Of
several runs the least time counts: noise only ever adds. Everything runs on one thread. All times are processor time, which other programs
on the machine disturb least. Each part has a process of its own, so that no part's memory slows or enlarges the next.
"""

# ruff: noqa: E402 threads are set before NumPy is imported

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"  # before NumPy is imported

import im2col
import lstm
import numpy as np
from against import compare
from hand.convolutional import Convolutional
from hand.dense import Dense
from hand.descent import Adam, Network, Optimizer, Sgd, train_epoch
from hand.recurrent import Lstm

import tpucc
from tpucc.api import Executable
from tpucc.artifacts import artifacts
from tpucc.diagnostics import UsageError
from tpucc.explain.stats import stats
from tpucc.floating.matrix_unit import Machine
from tpucc.interop.sources import read_source
from tpucc.ir.constants import Random, random_array
from tpucc.runtime.check import random_inputs
from tpucc.sim.timing import time_program
from tpucc.training.session import Session, Settings
from tpucc.training.start import started

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
GROWTH: tuple[tuple[str, str, str, tuple[int, ...]], ...] = (
    ("LSTM", "10_imdb_lstm", "time", (125, 250, 500, 1000)),
    ("ResNet-20", "09_cifar_resnet", "batch", (64, 256, 1024)),
)
"""Programs that grow: name, file, param, and its values."""
PEAK = """
import json, resource, sys, time
import tpucc
started = time.process_time()
exe = tpucc.compile(sys.argv[1], params=json.loads(sys.argv[2]))
seconds = time.process_time() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([len(exe.graph.nodes), len(exe.program.instructions), seconds, peak]))
"""
SIZES = (2, 20, 200, 2000, 20000)
"""Layers of one tile: each makes about five instructions."""
PRODUCTS = ((200, 2000, 2000), (512, 512, 512), (2048, 576, 64), (64, 64, 256), (2048, 9, 16), (32, 64, 10))
"""Rows, depth and columns."""
PRODUCTS_OF_A_RUN = 2**22
"""Multiplications up to which a product is repeated, to be longer than the clock's steps."""
ROUNDS = 15
BY_HAND: Mapping[str, tuple[Network, Optimizer, int]] = {
    "02_iris": (Dense(2, "sigmoid"), Sgd(0.01), 1),
    "04_digits_mlp": (Dense(3), Adam(0.001), 32),
    "05_digits_cnn": (Convolutional(2, Dense(2, dropout=0.25)), Adam(0.002), 32),
    "06_digits_lstm": (Lstm(64), Adam(0.003), 32),
}
"""The network of a program, its optimizer and the batch."""
T = TypeVar("T")


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


def in_onnxruntime(exe: Executable) -> tuple[Executable | None, list[str]]:
    """With the backend onnxruntime; or None, and the lines that say what it needs."""
    try:
        return exe.with_backend("onnxruntime"), []
    except UsageError as error:
        first, *_ = error.diagnostics
        return None, [f"  {first.message}", *(f"    {line}" for line in first.help)]


def weights_of(exe: Executable) -> list[np.ndarray]:
    return [node.attributes.value.data for node in exe.graph.nodes if node.op == "constant"]


def execution() -> None:
    """Five 2000×2000 layers at batch 200, bit-exact in 8 bits with everything around it, against the bare float32 products."""
    exe = tpucc.compile_source(CHAIN).with_backend("numpy")
    weights = weights_of(exe)
    x = np.random.default_rng(0).standard_normal((200, 2000), np.float32)

    def float_chain() -> np.ndarray:
        y = x
        for w in weights:
            y = y @ w
        return y

    ports = exe.runtime._prologue({"x": x})
    integers, missing = in_onnxruntime(exe)
    runs: list[Callable[[], object]] = [lambda: exe.run(x=x), lambda: exe.runtime.simulator.run(ports), float_chain]
    if integers is not None:
        runs.append(partial(integers.run, x=x))
    ours, device, plain, *eight = fastest(*runs)
    interpreted, _ = fastest(lambda: exe.runtime.ports({"x": x}, plain=True), float_chain, rounds=3)
    print("execution: five 2000×2000 layers, batch 200")
    print(f"  float32 products in NumPy    {1000 * plain:8.2f} ms   1.00")
    print(f"  tpucc, backend numpy         {1000 * ours:8.2f} ms   {ours / plain:.2f}")
    print(f"  of that the device's part    {1000 * device:8.2f} ms   {device / plain:.2f}")
    print(*(f"  tpucc, backend onnxruntime   {1000 * seconds:8.2f} ms   {seconds / plain:.2f}" for seconds in eight), *missing, sep="\n")
    print(f"  instruction by instruction   {1000 * interpreted:8.2f} ms   {interpreted / plain:.2f}")


def networks() -> None:
    """A recurrent and a convolutional network, from float to float, against plain float32 forwards."""
    exe = tpucc.compile(PROGRAMS / "10_imdb_lstm.tpu")
    by_shape = {array.shape: array for array in weights_of(exe)}
    shapes = {"lstm.kernel": (32, 400), "lstm.recurrent": (100, 400), "lstm.bias": (400,), "fc.kernel": (100, 1), "fc.bias": (1,)}
    weights, table = {name: by_shape[shape] for name, shape in shapes.items()}, by_shape[15000, 32] * np.float32(86.6)
    ids = random_inputs(exe.runtime)["ids"]
    ours, plain = fastest(lambda: exe.run(ids=ids), lambda: lstm.forward(weights, table, ids))
    print("LSTM of 100 units, 250 steps, batch 8")
    print(f"  float32 in NumPy             {1000 * plain:8.2f} ms   1.00")
    print(f"  tpucc, float in to float out {1000 * ours:8.2f} ms   {ours / plain:.2f}")
    for title, program in (("ResNet-20, batch 8", "09_cifar_resnet"), ("MobileNetV2, batch 1", "gallery/mobilenet_v2")):
        exe = tpucc.compile(PROGRAMS / f"{program}.tpu")
        assert exe.compilation is not None
        assert exe.compilation.graph is not None
        run, forward = partial(exe.run, images := random_inputs(exe.runtime)), partial(im2col.forward, exe.compilation.graph, images)
        ours, plain = fastest(run, forward)
        print(title)
        print(f"  float32 im2col in NumPy      {1000 * plain:8.2f} ms   1.00")
        print(f"  tpucc, float in to float out {1000 * ours:8.2f} ms   {ours / plain:.2f}")


def compiling() -> None:
    """Compile and timing speed as functions of the number of instructions; linear means that the speed stays."""
    print("compile: chains of one-tile layers")
    print(f"  {'instructions':>12} {'compile s':>10} {'per s':>10} {'timing s':>10} {'per s':>10}")
    for layers in SIZES:
        exe, compiled = timed(chain, layers, 8, 16)
        count = len(exe.runtime.program.instructions)
        timing = fastest(partial(time_program, exe.runtime.program), rounds=3)[0]
        print(f"  {count:12,} {compiled:10.3f} {count / compiled:10,.0f} {timing:10.4f} {count / timing:10,.0f}")


def tiles() -> None:
    """Few layers of many tiles: most of the time goes to the weights. It is compared with drawing them at random."""
    print("compile: layers of many tiles, beside drawing their weights")
    print(f"  {'layers':>6} {'weights of each':>15} {'instructions':>12} {'drawing s':>10} {'the rest s':>10} {'ratio':>6}")
    for layers, width in ((5, 256), (5, 1024), (5, 4096), (1, 16384)):
        exe, compiled = timed(chain, layers, 200, width)
        count = len(exe.runtime.program.instructions)
        del exe
        _, one = timed(random_array, (width, width), Random(0, "w0"))
        drawing, shape = layers * one, f"{width}×{width}"
        rest = compiled - drawing
        print(f"  {layers:6} {shape:>15} {count:12,} {drawing:10.3f} {rest:10.3f} {rest / drawing:6.2f}")


def resnet() -> None:
    """ResNet-50 at batch 1: compiled from the source, run from float to float, against the plain float32 forward by im2col."""
    exe, compiled = timed(lambda: tpucc.compile(RESNET, params={"batch": 1}))
    assert exe.compilation is not None
    assert exe.compilation.graph is not None
    graph = exe.compilation.graph
    inputs = random_inputs(exe.runtime)
    integers, missing = in_onnxruntime(exe)
    runs = [partial(each.run, inputs) for each in (exe.with_backend("numpy"), integers) if each is not None]
    plain, ours, *eight = fastest(partial(im2col.forward, graph, inputs), *runs, rounds=5)
    print(f"ResNet-50, batch 1, {len(exe.runtime.program.instructions):,} instructions")
    print(f"  float32 im2col in NumPy      {1000 * plain:8.2f} ms   1.00")
    print(f"  tpucc, backend numpy         {1000 * ours:8.2f} ms   {ours / plain:.2f}")
    print(*(f"  tpucc, backend onnxruntime   {1000 * seconds:8.2f} ms   {seconds / plain:.2f}" for seconds in eight), *missing, sep="\n")
    print(f"  compiling it from the source {1000 * compiled:8.2f} ms   {compiled / plain:.2f}")


def growth() -> None:
    """Compile time and peak memory of programs that grow, each compiled in a process of its own.

    Such a process is never smaller than this one, whose memory Linux counts until the new one starts: so this one compiles nothing.
    """
    print("compile: a recurrent network by its steps, a convolutional one by its batch")
    print(f"  {'program':<21} {'graph nodes':>11} {'instructions':>12} {'compile s':>10} {'per s':>10} {'peak MB':>8}")
    for name, file, param, values in GROWTH:
        for value in values:
            nodes, count, seconds, peak = compiled_apart(PROGRAMS / f"{file}.tpu", {param: value})
            label = f"{name}, {param} {value:,}"
            print(f"  {label:<21} {nodes:11,} {count:12,} {seconds:10.2f} {count / seconds:10,.0f} {peak / 1e6:8.0f}")


def compiled_apart(source: Path, params: Mapping[str, int]) -> tuple[int, int, float, int]:
    """Compiled in another process: nodes of the operator graph, instructions, processor seconds, and the peak of memory in bytes."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(source), json.dumps(params)], stdout=subprocess.PIPE, check=True)
    nodes, count, seconds, peak = json.loads(done.stdout)
    return nodes, count, seconds, peak


def million() -> None:
    """A program of a million instructions, of all engines: the chain's own, again and again. How long its timeline and numbers take."""
    exe = chain(2000, batch=8, width=16)
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
        exe, compiled = timed(tpucc.compile, PROGRAMS / f"{name}.tpu")
        page, drawn = timed(report, exe, name)
        count = len(exe.runtime.program.instructions)
        print(f"  {name:<18} {count:12,} {compiled:10.2f} {drawn:8.2f} {drawn / compiled:6.2f} {len(page) / 1e6:6.2f}")


def report(exe: Executable, name: str) -> bytes:
    assert exe.compilation is not None
    return artifacts(exe.compilation, exe.runtime, name, ("report",)).files["report.html"]


def products() -> None:
    """Products of a matrix unit for bfloat16 beside float32 products: both operands rounded each time, or once before.

    The exponents of the wide operand are spread over 2^25, so that only bounds of the errors prove its sums.
    """
    print("products of a matrix unit of 128 rows, beside NumPy's in float32")
    print(f"  {'shape':<13} {'NumPy ms':>9} {'rounding':>9} {'rounded':>8} {'wide':>7}")
    machine, random = Machine(128), np.random.default_rng(0)
    for m, k, n in PRODUCTS:
        a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
        wide = np.ldexp(a, -random.integers(0, 25, a.shape).astype(np.int32))
        left, right = machine.operand(a), machine.operand(b)
        again = max(1, PRODUCTS_OF_A_RUN // (m * k * n))
        runs = (partial(np.matmul, a, b), *(partial(machine.product, *pair) for pair in ((a, b), (left, right), (wide, b))))
        plain, *ours = fastest(*(partial(repeated, run, again) for run in runs))
        ratios = [seconds / plain for seconds in ours]
        print(f"  {f'{m}×{k}×{n}':<13} {1000 * plain / again:9.4f} {ratios[0]:9.2f} {ratios[1]:8.2f} {ratios[2]:7.2f}")


def training() -> None:
    """An epoch of the trained programs beside the same network by hand, in NumPy's float32; held-out rows aren't measured."""
    print("seconds an epoch")
    print(f"  {'program':<15} {'batch':>5} {'by hand':>8} {'host':>7} {'ratio':>6} {'tpu_v2':>7} {'ratio':>6}")
    for name, (network, optimizer, batch) in BY_HAND.items():
        with np.load(PROGRAMS / f"{name}_train.npz") as archive:
            examples = {key: archive[key] for key in archive}
        source, given = read_source(PROGRAMS / f"{name}.tpu"), Settings(epochs=2 * ROUNDS, examples=examples)
        with TemporaryDirectory() as empty:
            targets = (replace(given, target=target) for target in ("host", "tpu_v2"))
            host, machine = (started(source, Path(empty), name, {"batch": str(batch)}, settings) for settings in targets)
        parameters = {key: value.copy() for key, value in host.weights.items()}
        by_hand = partial(train_epoch, network, optimizer, parameters, *examples.values(), batch)
        plain, *ours = fastest(by_hand, partial(epoch_of, host, host.run()), partial(epoch_of, machine, machine.run()))
        ratios = " ".join(f"{seconds:7.4f} {seconds / plain:6.2f}" for seconds in ours)
        print(f"  {name:<15} {batch:5} {plain:8.4f} {ratios}")


def epoch_of(session: Session, steps: Iterator[object]) -> None:
    for _ in range(session.examples.steps):
        next(steps)


def repeated(function: Callable[[], object], times: int) -> None:
    for _ in range(times):
        function()


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


def chain(layers: int, batch: int, width: int) -> Executable:
    return tpucc.compile_source(CHAIN, params={"batch": batch, "width": width, "layers": layers})


def timed(function: Callable[..., T], *arguments: object) -> tuple[T, float]:
    """A function's result, and the least time of three runs, in seconds; of fewer runs when these take ten seconds."""
    runs: list[float] = []
    while True:
        started = processor_time()
        made = function(*arguments)
        runs.append(processor_time() - started)
        if len(runs) == 3 or sum(runs) > 10:
            return made, min(runs)


def processor_time() -> float:
    """Seconds of this process, and of its children that have ended: Graphviz is one."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    functions = (execution, compiling, tiles, million, resnet, networks, growth, reports, products, training)
    parts = {function.__name__: function for function in functions}
    parser.add_argument("part", nargs="?", choices=tuple(parts), help="only this part")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="compare compile times with another checkout instead")
    parser.add_argument("--write", action="store_true", help="put the output into docs/performance.md")
    options = parser.parse_args()
    if options.against is not None:
        beside(options.against)
        return
    if options.part is None:
        for part in parts:
            subprocess.run([sys.executable, __file__, part, *(["--write"] if options.write else [])], check=True)
        return
    output = io.StringIO()
    with redirect_stdout(output):
        parts[options.part]()
    print(output.getvalue(), end="", flush=True)
    if options.write:
        PAGE.write_text(with_output(PAGE.read_text("utf-8"), options.part, output.getvalue()), "utf-8")


if __name__ == "__main__":
    main()
