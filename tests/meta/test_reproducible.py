"""The same input gives the same bytes: in another folder, under another hash seed, at another time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


Way = tuple[str, str]
WAYS: tuple[Way, ...] = (("02_iris", "tiny"), ("04_digits_mlp", "tpu_v1"))
"""Programs, and the machines that they are compiled for."""
MORE: tuple[Way, ...] = tuple((path.stem, "tpu_v1") for path in sorted(PROGRAMS.glob("*.tpu")))
COMPILE = """
import ast, sys
from tpucc.cli.main import main
for stem, target in ast.literal_eval(sys.argv[1]):
    assert main(["compile", f"{stem}.tpu", "--target", target, "-o", stem, "--quiet"]) == 0
"""
Files = dict[str, bytes]


def compiled(folder: Path, seed: str, ways: tuple[Way, ...]) -> dict[str, Files]:
    """For each program every file that a compile in a fresh folder writes, by a process with this hash seed."""
    folder.mkdir(parents=True)
    for stem, _ in ways:
        for path in PROGRAMS.glob(f"{stem}*"):
            shutil.copy(path, folder)
    command = [sys.executable, "-c", COMPILE, repr(ways)]
    subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
    return {stem: {path.name: path.read_bytes() for path in (folder / stem).iterdir()} for stem, _ in ways}


@pytest.mark.soak
@pytest.mark.parametrize("ways", [WAYS, pytest.param(MORE, marks=pytest.mark.soak)], ids=["two", "all"])
def test_two_compiles_give_the_same_bytes(ways: tuple[Way, ...], tmp_path: Path) -> None:
    first, second = compiled(tmp_path / "a", "1", ways), compiled(tmp_path / "deeper" / "b", "4242", ways)
    for stem, _ in ways:
        assert first[stem]
        assert first[stem].keys() == second[stem].keys()
        assert [name for name, data in first[stem].items() if data != second[stem][name]] == [], stem
