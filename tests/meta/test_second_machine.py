"""The training machines are values beside v1: nothing but the lowering of steps names their parts, and v1 stands without them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.meta.test_core import ACT
from tests.support.core import NEEDED, copy_core, install_alone, isolated
from tests.support.imports import ROOT, imports_of, module_files

OF_TIME = ("tpucc.machines.v2", "tpucc.machines.v2.links", "tpucc.machines.v2.units")
"""How long work takes, without instructions: steps are timed by it."""
MACHINES = ("tpucc.machines.v2", "tpucc.machines.v3")
LOWERING = "tpucc.training.lowering"
NAMES = re.compile(r"\bvmem\b|\bHBM\b")
TITLES = ("tpucc.explain", "tpucc.see", "tpucc.target", "tpucc.training", "tpucc.cli", "tpucc.labs.kernel")
"""Modules that tell people of TPU v2's memory, in words or figures."""


def test_the_parts_of_the_machines_are_named_where_steps_are_lowered() -> None:
    found = imports_of(module_files())
    parts = {name for name in found if name.startswith(MACHINES) and name not in OF_TIME}
    readers = {name for name, imported in found.items() if imported & parts and not name.startswith((*MACHINES, LOWERING))}
    assert len(parts) >= 6
    assert readers == set()


def test_nothing_else_names_its_memories() -> None:
    wrong = [
        name for name, path in module_files().items() if not name.startswith((*MACHINES, *TITLES)) and NAMES.search(path.read_text("utf-8"))
    ]
    assert wrong == []


def test_v1_stands_without_them(tmp_path: Path) -> None:
    copy_core(tmp_path / "core")
    for name in MACHINES:
        shutil.rmtree(tmp_path / "core" / name.replace(".", "/"))
    install_alone(NEEDED, tmp_path / "site")
    for file in (ROOT / "programs").glob("03_wine*"):
        shutil.copy(file, tmp_path)
    words = isolated((tmp_path / "core", tmp_path / "site"), ACT, str(tmp_path / "03_wine.tpu"))
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert '"equal": true' in done.stdout
