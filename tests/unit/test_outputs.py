"""No command writes over a file that it reads, or two outputs into one file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.support.command_line import SMALL, run

READ, TWICE = "this command reads it", "another output of this command has that place"
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


@pytest.mark.parametrize("command", COMMANDS)
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
