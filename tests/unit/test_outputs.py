"""No command writes over a file that it reads, or two outputs into one file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.command_line import SMALL, run
from tests.support.watching import draw
from tpucc.compilation import Compilation
from tpucc.options import Options
from tpucc.runtime.runtime import Runtime
from tpucc.watch.build import Failed, Recipe, attempt

READ, TWICE = "it is an input", "another output has that place"
COMMANDS: dict[str, tuple[str, str]] = {
    "report small.tpu -o small.tpu": ("small.tpu", READ),
    "report small.tpu -o linked.html": ("linked.html", READ),
    "report small.tpu -o hard.html": ("hard.html", READ),
    "report small.tpu -o w.npz": ("w.npz", READ),
    "report small.tpu --target mine.toml -o mine.toml": ("mine.toml", READ),
    "report small.tpu --replace allocate=mine.py -o mine.py": ("mine.py", READ),
    "viz small.tpu -o ./small.tpu": ("small.tpu", READ),
    "export small.tpu -o w.npz": ("w.npz", READ),
    "compare small.tpu --b=-O0 -o small.tpu": ("small.tpu", READ),
    "profile small.tpu --trace small.tpu": ("small.tpu", READ),
    "run small.tpu --input x.npz --output x.npz": ("x.npz", READ),
    "run small.tpu --output y.npz --quantized-output y.npz": ("y.npz", TWICE),
    "asm small.tpu -o small.tpu": ("small.tpu", READ),
    "opt small.tpu -o small.tpu": ("small.tpu", READ),
    "train small.tpu -o . --weights weights.npz": ("weights.npz", READ),
    "lab check . --json mine.py": ("mine.py", READ),
    "lab grade . --json mine.py": ("mine.py", READ),
    "lab board . -o results.json": ("results.json", READ),
    "sweep small.tpu -D batch=1 -o v.csv --page small.tpu": ("small.tpu", READ),
    "sweep small.tpu -D batch=1 -o v.csv --page w.npz": ("w.npz", READ),
    "sweep small.tpu -D batch=1 -o v.csv --page ./v.csv": ("v.csv", TWICE),
    "sweep small.tpu -D batch=1 -o v.csv --page v.points.jsonl": ("v.points.jsonl", TWICE),
}


@pytest.fixture
def files(small: Path) -> dict[str, bytes]:
    """What lies in the folder: a source with its weights, and other files that a command line may name."""
    small.write_text(SMALL.replace("random(seed=1)", '"w.npz"'))
    for name in ("w", "x", "weights"):
        np.savez(f"{name}.npz", w=np.ones((8, 8), np.float32))
    for name in ("mine.toml", "mine.py", "results.json"):
        Path(name).write_text("{}")
    Path("linked.html").symlink_to("small.tpu")
    os.link("small.tpu", "hard.html")
    return {path.name: path.read_bytes() for path in Path().iterdir()}


@each(list(COMMANDS))
def test_no_input_and_no_other_output_is_written_over(command: str, files: dict[str, bytes], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*command.split()) == 2
    name, why = COMMANDS[command]
    told = capsys.readouterr().err
    assert "error E0505: can't write " in told
    assert f"{name}: {why}" in told
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == files


def test_what_an_earlier_run_has_written_is_replaced(small: Path) -> None:
    for _ in range(2):
        assert run("report", small, "-o", "a.html", "--quiet") == 0


def of_one(act: Callable[[tpucc.Executable], object]) -> Callable[[], object]:
    """An act on a model that is made from all kinds of files."""
    return lambda: act(tpucc.compile("small.tpu", weights="w.npz", calibration="c.npz", target="mine.toml"))


CALLS: dict[str, tuple[str, Callable[[], object]]] = {
    "a program, over its source": ("small.tpu", of_one(lambda exe: exe.save("./small.tpu"))),
    "a program, over its weights": ("w.npz", of_one(lambda exe: exe.save("w.npz"))),
    "a program, over its machine": ("mine.toml", of_one(lambda exe: exe.save("mine.toml"))),
    "a program, over the labelled rows": ("small_test.npz", of_one(lambda exe: exe.save("small_test.npz"))),
    "another backend's": ("w.npz", of_one(lambda exe: exe.with_backend("numpy").save("w.npz"))),
    "the report, through a link": ("linked.html", of_one(lambda exe: exe.report().save("linked.html"))),
    "an ONNX file": ("c.npz", of_one(lambda exe: tpucc.export_onnx(exe, "c.npz"))),
    "of a text, the weights": ("w.npz", lambda: tpucc.compile_source(Path("small.tpu").read_text()).save("w.npz")),
    "of a stage, the model's": ("small.tpu", lambda: of_stage("small.tpu").save("small.tpu")),
    "of a stage, the value's": ("w.npz", lambda: of_stage(tpucc.compile("small.tpu", weights="w.npz")).save("w.npz")),
    "a loaded program": ("small.tpub", lambda: tpucc.load("small.tpub").save("small.tpub")),
    "an imported source": ("small.tpu", lambda: tpucc.ImportedModel("m", "", {}, (Path("linked.html"),)).save("small.tpu")),
    "a sweep's table": ("v.csv", lambda: tpucc.sweep("small.tpu", weights=Path("v.csv"), table="v.csv")),
    "a sweep's page": ("small.tpu", lambda: tpucc.sweep("small.tpu", jobs=1).page().save("small.tpu")),
    "a sweep, over its points": ("s.points.jsonl", lambda: tpucc.sweep("small.tpu", jobs=1, table="s.csv").save("s.points.jsonl")),
    "a training": ("weights.npz", lambda: tpucc.train("small.tpu", weights="weights.npz", steps=1).save(".")),
}


def of_stage(like: tpucc.Executable | str) -> tpucc.Executable:
    return tpucc.resume(tpucc.compile("small.tpu").layers, like)


TRAINED = """
train(x: f32[batch, 6] in [-1.0, 1.0], label: i32[batch] in [0, 2]) -> f32[]:
    return cross_entropy(small(x), label)
optimizer sgd(rate=0.1)
examples "train.npz"
"""


@pytest.fixture
def read(small: Path) -> dict[str, bytes]:
    """What lies in the folder: a model that can be compiled and trained, and all that it is made from."""
    small.write_text(SMALL.replace("random(seed=1)", '"w.npz"') + TRAINED)
    for name in ("w.npz", "weights.npz"):
        np.savez(name, w=np.ones((6, 8), np.float32), v=np.ones((8, 3), np.float32))
    np.savez("c.npz", x=np.ones((4, 6), np.float32))
    np.savez("train.npz", x=np.ones((4, 6), np.float32), label=np.ones(4, np.int32))
    np.savez("small_test.npz", x=np.ones((4, 6), np.float32), labels=np.ones(4, np.int32))
    Path("mine.toml").write_bytes((Path(tpucc.__file__).parent / "targets" / "tpu_v1.toml").read_bytes())
    Path("v.csv").write_bytes(b"")
    Path("linked.html").symlink_to("small.tpu")
    tpucc.compile("small.tpu").save("small.tpub")
    return {path.name: path.read_bytes() for path in Path().iterdir()}


@pytest.mark.parametrize("call", one_of(2, CALLS))
def test_no_call_writes_over_a_file_that_its_value_is_made_from(call: str, read: dict[str, bytes]) -> None:
    name, act = CALLS[call]
    with pytest.raises(tpucc.UsageError, match=rf"^error E0505: can't write {re.escape(name)}: it is an input"):
        act()
    assert {name: Path(name).read_bytes() for name in read} == read


@pytest.mark.parametrize("name", ["small.tpu", "w.npz", "c.npz"])
def test_watch_writes_over_nothing_that_it_looks_at(name: str, read: dict[str, bytes]) -> None:
    def drawn(compilation: Compilation, runtime: Runtime) -> dict[str, bytes]:
        return {**draw(compilation, runtime), name: b""}

    outcome = attempt(Recipe(Path("small.tpu"), Path("."), Options, drawn, (Path("c.npz"),)))
    assert isinstance(outcome, Failed)
    assert outcome.error.diagnostics[0].message == f"can't write {name}: it is an input"
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == read
