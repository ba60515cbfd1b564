"""The tests of onnx, onnxruntime and numpy with the lowest versions that pyproject.toml allows, and with the newest.

Each in an environment of its own in build/versions. `make versions` runs it, which takes minutes and the package index.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("numpy", "onnx", "onnxruntime")
TESTS = "backends portable onnx_casts onnx_export onnx_reading numerics floating_product calibrate"

NO_KERNELS = (
    "tests/unit/test_onnx_export.py::test_programs_in_integers[left_constants-16]",
    "tests/unit/test_onnx_reading.py::test_operators_on_sequences",
    "tests/unit/test_onnx_reading.py::test_integers_that_move_keep_their_scale[nodes2-int8]",
    "tests/unit/test_onnx_reading.py::test_a_maximum_pool_has_a_window_where_less_than_a_stride_is_missing",
)
"""Tests of files whose operators the lowest version of ONNX Runtime can't compute, or computes in another way (1.20 has no window of a
maximum pool over the edge of a low image), so that it can't be their judge."""


def lowest() -> list[str]:
    """What pip is asked for, as numpy==2.1.*."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["onnxruntime"]]
    bounds = dict(re.findall(r"([a-z]+)>=([\d.]+)", "\n".join(asked)))
    return [f"{name}=={bounds[name]}.*" for name in PACKAGES]


def run(name: str, asked: list[str]) -> bool:
    folder = ROOT / "build" / "versions" / name
    venv.create(folder, with_pip=True, clear=True)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-e", ".[dev]", "--upgrade", *asked], cwd=ROOT, check=True)
    print(f"{name}:", *asked, flush=True)
    tests = [f"tests/unit/test_{name}.py" for name in TESTS.split()]
    left_out = [f"--deselect={test}" for test in NO_KERNELS if name == "lowest"]
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", *left_out, *tests, "tests/differential/test_onnxruntime.py"]
    return subprocess.run(command, cwd=ROOT).returncode == 0


if __name__ == "__main__":
    ways = {"lowest": lowest(), "newest": list(PACKAGES)}
    results = [run(name, ways[name]) for name in sys.argv[1:] or ways]
    sys.exit(0 if all(results) else 1)
