"""The wheel is enough: with nothing of the checkout beside it, it makes a model, compiles it, and has the paper's programs."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

pytest.importorskip("hatchling")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip writes into an environment for the wheel."""
    built, site = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def tpucc(installed: Path, folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONPATH": str(installed)}
    command = [
        sys.executable,
        "-c",
        f"import tpucc; assert tpucc.__file__.startswith({str(installed)!r}); import tpucc.__main__ as m; m.main()",
    ]
    done = subprocess.run([*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.soak
def test_the_first_minute(installed: Path, tmp_path: Path) -> None:
    assert "iris" in tpucc(installed, tmp_path, "programs")
    tpucc(installed, tmp_path, "new", "mine", "--from", "iris")
    assert "report.html" in tpucc(installed, tmp_path, "compile", "mine/mine.tpu")
    assert "check: equal" in tpucc(installed, tmp_path, "run", "mine/mine.tpu", "--check")


def test_the_paper_s_programs_are_in_it(installed: Path) -> None:
    assert {path.stem for path in (installed / "tpucc" / "programs" / "paper").glob("*.tpu")} == {
        "mlp0",
        "mlp1",
        "lstm0",
        "lstm1",
        "cnn0",
        "cnn1",
        "paradnn",
    }
