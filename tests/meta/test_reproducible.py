"""The same input gives the same bytes: in another folder, under another hash seed, at another time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def compiled(folder: Path, stem: str, seed: str, target: str) -> dict[str, bytes]:
    """Every file that a compile in a fresh folder writes."""
    folder.mkdir()
    for path in PROGRAMS.glob(f"{stem}*"):
        shutil.copy(path, folder)
    command = [sys.executable, "-m", "tpucc", "compile", f"{stem}.tpu", "--target", target, "-o", "out", "--quiet"]
    subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.mark.parametrize(
    ("stem", "target"), [("01_hello", "tpu_v1"), ("02_iris", "tiny"), ("03_wine", "tpu_v1"), ("04_digits_mlp", "tpu_v1")]
)
def test_two_compiles_give_the_same_bytes(tmp_path: Path, stem: str, target: str) -> None:
    first = compiled(tmp_path / "a", stem, "1", target)
    (tmp_path / "deeper").mkdir()
    second = compiled(tmp_path / "deeper" / "b", stem, "4242", target)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
