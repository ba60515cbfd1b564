"""The core stands alone: without the annex's folders it compiles a model, runs it, judges it, and passes its own tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.core import FOR_TESTS, NEEDED, copy_core, core_tests, install_alone, is_core, isolated
from tests.support.imports import ROOT

ACT = """
import json
from importlib.util import find_spec
from pathlib import Path
from tpucc.data.sources import read_source
from tpucc.driver import compile_source
from tpucc.isa.container import decode, encode
from tpucc.options import options_of
from tpucc.runtime.check import random_inputs
from tpucc.runtime.judge import judge
from tpucc.runtime.runtime import Runtime

path = Path(sys.argv[1])
made = compile_source(read_source(path), path.parent, options_of(target="tiny", params={"batch": 3}))
runtime = Runtime(decode(encode(made.program), path.name))
outputs = runtime.run(random_inputs(runtime, 1))
verdict = judge(runtime, made)
others = [name for name in ("tpucc.api", "tpucc.cli", "tpucc.see", "tpucc.interop", "click", "onnx") if find_spec(name)]
print(json.dumps({
    "shapes": {name: array.shape for name, array in outputs.items()},
    "equal": verdict.equal,
    "cycles": verdict.cycles,
    "others": others,
    "modules": [name for name in sys.modules if name.startswith("tpucc")],
}))
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the core alone."""
    place = tmp_path_factory.mktemp("core")
    copy_core(place)
    return place


def test_the_core_alone_compiles_runs_and_judges(alone: Path, tmp_path: Path) -> None:
    install_alone(NEEDED, tmp_path / "site")
    for file in (ROOT / "programs").glob("03_wine*"):
        shutil.copy(file, tmp_path)
    words = isolated((alone, tmp_path / "site"), ACT, str(tmp_path / "03_wine.tpu"))
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["equal"], found["others"]) == (True, [])
    assert found["cycles"] > 0
    assert all(shape[0] == 3 for shape in found["shapes"].values())
    assert [name for name in found["modules"] if name != "tpucc" and not is_core(name)] == []


@pytest.mark.soak
@pytest.mark.parametrize("words", [("--collect-only",), pytest.param((), marks=pytest.mark.soak)], ids=["collected", "run"])
def test_the_core_alone_passes_its_own_tests(words: tuple[str, ...], alone: Path, tmp_path: Path) -> None:
    """The files of tests/unit that import nothing else. Each run has them beside the annex, and collects them here."""
    install_alone((*NEEDED, *FOR_TESTS), tmp_path / "site")
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__", "labs", "browser"))
    for name in ("pyproject.toml", "programs", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "tpucc").symlink_to(alone / "tpucc")
    files = [str(path.relative_to(ROOT)) for path in core_tests()]
    assert len(files) > 50
    run = "import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    command = isolated((tmp_path, tmp_path / "site"), run, "-q", *words, "-m", "not long and not annex", "-p", "no:cacheprovider", *files)
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
