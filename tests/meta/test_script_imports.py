"""The Python scripts of benchmarks/ and docs/: what they import of tpucc and of the tests is there. Nothing else runs all of them."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.cases import each

pytestmark = pytest.mark.annex

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(path for folder in ("benchmarks", "docs") for path in (ROOT / folder).rglob("*.py"))


@each(SCRIPTS)
def test_each_name_that_a_script_imports_is_there(path: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    for found in imports:
        module = found.module or ""
        if module.partition(".")[0] not in ("tpucc", "tests"):
            continue
        for name in (alias.name for alias in found.names):
            assert hasattr(import_module(module), name) or import_module(f"{module}.{name}"), f"{path.name}: {name}"
