"""The chapter "Follow one number" says what its program does, and names ten files at most, of 900 code lines at most."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.code_lines import code_lines
from tpucc.cli.main import main
from tpucc.machines.v1 import Opcode
from tpucc.numerics import AnyArray
from tpucc.sim.interpret import Interpreter

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/follow-one-number.md").read_text("utf-8")
ROW = (0.5, -0.25, 1.0, 0.0, 0.75, -1.0)
PLACE = 1, 2
"""Row and column of the number."""


def test_the_files_are_few_and_short() -> None:
    files = re.findall(r"^\[`(\S+)`\]\(\.\./\1\)$", PAGE, re.MULTILINE)
    assert 5 < len(files) == len(set(files)) <= 10
    assert sum(code_lines((ROOT / file).read_text("utf-8")) for file in files) <= 900


def test_the_command_writes_the_texts_that_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = re.findall(r"```tpu\n(.*?)```", PAGE, re.DOTALL)
    (command,) = re.findall(r"```sh\ntpucc (.*?)\n```", PAGE)
    monkeypatch.chdir(tmp_path)
    Path("one.tpu").write_text(source)
    assert main([*command.split(), "--quiet"]) == 0
    written = "".join(path.read_text("utf-8") for path in Path("stages").iterdir() if path.stem[3:] in ("elaborate", "quantise", "lower"))
    lines = {line.strip() for line in written.splitlines()}
    shown = "".join(re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)).splitlines()
    assert [line for line in shown if line.strip() not in lines and line not in written] == []


def test_the_numbers_are_those_of_the_machine() -> None:
    (source,) = re.findall(r"```tpu\n(.*?)```", PAGE, re.DOTALL)
    made = tpucc.compile_source(source, target="tiny")
    for line in (line for block in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()):
        assert any(line.strip() in text for text in map(str, (made.graph, made.layers, made.tiles))), line
    x = np.zeros((3, 6), np.float32)
    x[1] = ROW
    integers = np.clip(np.rint(x / 0.007843137718737125) - 1, -128, 127).astype(np.int8)
    layer = made.layers.value["matmul"]
    weights, bias, multiplier = (constant(made, name) for name in layer.operands[1:])
    assert row(integers[1]) in PAGE
    assert row(weights[:, 2]) in PAGE
    assert bias[2] == -67
    assert f"{multiplier[2]:.7f}" == "0.0035650"
    seen: list[int] = []
    machine = Interpreter(made.program.value)
    machine.begin({"x.i8": integers})
    for index in range(len(machine.program.instructions)):
        instruction = machine.execute(index)
        if instruction.opcode in (Opcode.MATRIX_MULTIPLY, Opcode.ACTIVATE):
            seen.append(int(machine.memories["acc"][PLACE]))
    assert seen[:2] == [-16_271, -11_636]
    assert "| instruction 1 | −16,271 |" in PAGE
    assert "| instruction 3 | −11,636 |" in PAGE
    found = made.run({"x": x})
    assert f"{float(np.asarray(next(iter(found.values())))[PLACE]):.3f}" == "-0.780"


def constant(made: tpucc.Executable, name: str) -> AnyArray:
    value: AnyArray = made.layers.value[name].attributes.value.data
    return value


def row(values: AnyArray) -> str:
    """Numbers as a row of a table of the page."""
    return f"| {' | '.join(str(value) for value in values.tolist())} |".replace("-", "−")
