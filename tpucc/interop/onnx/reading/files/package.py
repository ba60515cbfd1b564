"""The package onnx, which decodes and checks files: it is imported when a file is read, and not before."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError


def onnx_package(module: str = "onnx") -> Any:
    """The package, or one of its modules. Raises `UsageError` E1020 where it isn't installed."""
    try:
        return import_module(module)
    except ImportError:
        text = "reading an ONNX file needs a package that isn't installed: onnx"
        raise UsageError(Diagnostic("E1020", text, help=("python -m pip install 'tpucc[onnx]' installs it",))) from None
