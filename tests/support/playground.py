"""The playground's page, built for tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

BUILD = Path(__file__).resolve().parents[2] / "docs" / "playground" / "build_playground.py"


def builder() -> ModuleType:
    """`docs/playground/build_playground.py` as a module."""
    spec = importlib.util.spec_from_file_location("playground_build", BUILD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(folder: Path, pyodide: str = "") -> Path:
    """The page, with Pyodide if it is given, and the reports of two programs. Skips the test where CodeMirror can't be had."""
    module = builder()
    try:
        if pyodide:
            module.build(folder, pyodide, ["hello", "iris"])
        else:
            module.write_page(folder, ["hello", "iris"])
    except module.BuildError as error:
        pytest.skip(str(error))
    return folder
