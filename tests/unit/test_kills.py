"""A compile that is killed at any moment leaves the files of one run: those before, or its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import SMALL
from tests.support.seeds import at_length

COUNT = 20

RUNNER = """
import contextlib, io, os, random, signal, sys, time
from pathlib import Path
from tests.support.seeds import at_length
from tpucc.cli.main import main
from tpucc.files import read_file

def compiled(folder, units):
    with contextlib.redirect_stdout(io.StringIO()):
        return main(["compile", "small.tpu", "-o", folder, "-D", f"units={units}", "--emit", "graph,layers,tile,asm,tpub,stats", "--quiet"])

def content(folder):
    return {name: read_file(Path(folder) / name) for name in names}

count, seed = int(sys.argv[1]), int(sys.argv[2])
sizes = (8, 9, 10)
for units in sizes:
    assert compiled(f"whole{units}", units) == 0
names = sorted(path.name for path in Path("whole8").iterdir())
whole = {units: content(f"whole{units}") for units in sizes}
started = time.perf_counter()
compiled("out", sizes[0])
took = time.perf_counter() - started
draw = random.Random(seed)
killed = 0
for _ in range(count):
    units = draw.choice(sizes)
    child = os.fork()
    if not child:
        os._exit(compiled("out", units))
    time.sleep(draw.uniform(0, 1.2 * took))
    os.kill(child, signal.SIGKILL)
    killed += os.waitpid(child, 0)[1] != 0
    found = content("out")
    assert found in whole.values(), "files of two runs"
    left = {path.name for path in Path("out").iterdir() if not path.name.startswith(".tpucc-")}
    assert left == set(names), left
print(killed)
"""


def killed(folder: Path, count: int, seed: int) -> int:
    """How many of `count` compiles were killed before their end."""
    (folder / "small.tpu").write_text(SMALL)
    done = subprocess.run([sys.executable, "-c", RUNNER, str(count), str(seed)], cwd=folder, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_kill_leaves_files_of_one_run(tmp_path: Path) -> None:
    assert killed(tmp_path, COUNT, 0) > COUNT // 4


@at_length(500, 100)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_kill_leaves_files_of_one_run_at_length(seeds: range, tmp_path: Path) -> None:
    assert killed(tmp_path, len(seeds), seeds.start) > len(seeds) // 4
