"""Python files that the user names."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.files import read_file
from tpucc.plugins.guard import SECONDS, Guest


def executed(path: Path, seconds: float = SECONDS) -> ModuleType:
    """The module that a Python file makes. It is executed: it is the user's own code, and may import what lies beside it.

    Raises `UsageError` when it can't be read or is no Python file, `PluginError` when it fails.
    """
    read_file(path)
    spec = importlib.util.spec_from_file_location(f"tpucc_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(Diagnostic("E0513", f"{path} is not a Python file; a file with passes or stages ends in .py"))
    module = importlib.util.module_from_spec(spec)
    assert module.__file__ is not None
    Guest(f"the file {path}", module.__file__, 0, seconds).call(spec.loader.exec_module, module)
    return module
