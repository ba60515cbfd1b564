"""The page about the trained programs: how many held-out rows are right, in each arithmetic that they can be trained and run in."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

import tpucc
from tpucc.driver import front_end
from tpucc.interop.sources import read_source
from tpucc.options import Options
from tpucc.training.heldout import HeldOut
from tpucc.training.initial import given_weights
from tpucc.training.session import arithmetic_of

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
COMMANDS: Mapping[str, str] = runpy.run_path(str(PROGRAMS / "train.py"))["COMMANDS"]
CORES = 8
TEXT = """\
# Training

How many of the held-out rows are right, which training has never seen. Each program is trained three times, from the
same first weights:

- in float32 on the host (`--target host`), whose last bits depend on the processor and its BLAS;
- in bfloat16 on one core of TPU v2: the command as it stands. `make train` runs it and puts the weights beside the program;
- in bfloat16 on eight cores (`--cores 8`; iris with `-D batch=8`, as a batch of one can't be divided);
- not at all for the last column: the weights of one core of TPU v2 are quantised and run on TPU v1 (`tpucc run NAME.tpu --check`), whose
  outputs are equal to the integer reference.

| program | host, float32 | tpu_v2, one core | tpu_v2, eight cores | then on tpu_v1, int8 |
|---|---|---|---|---|
"""
AFTER = """
The commands, in the folder `programs`:

```text
"""


def training_page(known: Mapping[str, str]) -> str:
    """`known` has what some programs reach on the host, where that is not to be measured: another processor may give another picture."""
    rows = [f"| {name} | {known.get(name) or _host(name)} | {_machine(name)} | {_cores(name)} | {_integers(name)} |" for name in COMMANDS]
    return TEXT + "\n".join(rows) + "\n" + AFTER + "\n".join(COMMANDS.values()) + "\n```\n"


def host_cells(page: str) -> dict[str, str]:
    """What the page says of the host, by program."""
    return dict(re.findall(r"(?m)^\| (\w+) \| ([\d.]+ %) \|", page))


def quick_patterns() -> Iterator[str]:
    """What the page's rows must match, as far as it is soon computed: no training."""
    yield from (rf"\| {name} \| [\d.]+ % \| {_machine(name)} \| [\d.]+ % \| {_integers(name)} \|" for name in COMMANDS)


def _host(name: str) -> str:
    return _trained(name, "host", 1, _params(name))


def _cores(name: str) -> str:
    batch = _params(name)["batch"]
    return _trained(name, "tpu_v2", CORES, {"batch": batch if batch % CORES == 0 else CORES})


def _params(name: str) -> dict[str, int]:
    return {"batch": int(_option(name, "-D").removeprefix("batch="))}


def _option(name: str, option: str) -> str:
    found = re.search(rf" {option} (\S+)", COMMANDS[name])
    return found[1] if found else "0"


def _trained(name: str, target: str, cores: int, params: Mapping[str, int]) -> str:
    epochs, seed = int(_option(name, "--epochs")), int(_option(name, "--seed"))
    made = tpucc.train(PROGRAMS / f"{name}.tpu", target=target, cores=cores, params=params, epochs=epochs, seed=seed)
    return _percent(made.history["epochs"][-1]["held_out"]["accuracy"])


def _machine(name: str) -> str:
    """Of the committed weights: those of the command."""
    graph = front_end(read_source(PROGRAMS / f"{name}.tpu"), Options()).graph
    held_out, _ = HeldOut.find(graph, PROGRAMS / f"{name}_test.npz", None, arithmetic_of("tpu_v2"))
    assert held_out is not None
    return _percent(held_out.measure(given_weights(graph, PROGRAMS / f"{name}.npz"))["accuracy"])


def _integers(name: str) -> str:
    exe = tpucc.compile(PROGRAMS / f"{name}.tpu")
    with np.load(PROGRAMS / f"{name}_test.npz") as archive:
        x, labels = (archive[key] for key in archive)
    (found,) = exe.run(x).values()
    return _percent(float((found.argmax(axis=1) == labels).mean()))


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
