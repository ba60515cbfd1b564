"""Python files that the user names."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.files import read_file
from tpucc.plugins.depth import counted
from tpucc.plugins.guard import SECONDS, Guest


class _Uncached(SourceFileLoader):
    """Reads the source each time. Python takes a compiled module for the source's if both have one second and one size: a file that is
    edited and run again at once would run as it was."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return counted(code)


def executed(path: Path, seconds: float = SECONDS) -> ModuleType:
    """The module that a Python file makes. It is executed: it is the user's own code, and may import what lies beside it.

    Raises `UsageError` when it can't be read or is no Python file, `PluginError` when it fails.
    """
    read_file(path)
    name, place = f"tpucc_plugin_{path.stem}", str(path.absolute())
    spec = importlib.util.spec_from_file_location(name, place, loader=_Uncached(name, place) if path.suffix == ".py" else None)
    if spec is None or spec.loader is None:
        raise UsageError(Diagnostic("E0513", f"{path} is not a Python file; a file with passes or stages ends in .py"))
    module = importlib.util.module_from_spec(spec)
    assert module.__file__ is not None
    Guest(f"the file {path}", module.__file__, 0, seconds).call(spec.loader.exec_module, module)
    return module
