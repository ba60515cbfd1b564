"""tpucc: a compiler that you can see through.

    import tpucc
    exe = tpucc.compile("iris.tpu", params={"batch": 8})
    y = exe.run(x=array)

The names below are the public API; everything is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tpucc.version import VERSION

if TYPE_CHECKING:
    from tpucc import labs as lab
    from tpucc.api import (
        Executable,
        ImportedModel,
        InputWarning,
        Training,
        compare,
        compile,
        compile_source,
        export_onnx,
        from_torch,
        import_onnx,
        judge,
        load,
        resume,
        train,
    )
    from tpucc.diagnostics import (
        CheckError,
        CompileError,
        Diagnostic,
        Error,
        InputError,
        InternalError,
        LimitError,
        Origin,
        PluginError,
        ProgramError,
        Source,
        Span,
        TrainingError,
        UsageError,
    )
    from tpucc.explain.comparison.compare import Comparison
    from tpucc.ir.graph import Graph, GraphBuilder
    from tpucc.ir.node import Node
    from tpucc.isa.program import Program
    from tpucc.passes.base import Context, Pass
    from tpucc.runtime.judge import Verdict
    from tpucc.schedule.allocate import TooLarge
    from tpucc.stages import Stages
    from tpucc.swept import Sweep, sweep
    from tpucc.target import Target, load_target

_HOMES = {
    "tpucc.api": (
        "Executable", "ImportedModel", "InputWarning", "Training", "compare", "compile", "compile_source", "export_onnx", "from_torch",
        "import_onnx", "judge", "load", "resume", "train",
    ),
    "tpucc.diagnostics": (
        "CheckError", "CompileError", "Diagnostic", "Error", "InputError", "InternalError", "LimitError", "Origin", "PluginError",
        "ProgramError", "Source", "Span", "TrainingError", "UsageError",
    ),
    "tpucc.ir.graph": ("Graph", "GraphBuilder"),
    "tpucc.ir.node": ("Node",),
    "tpucc.isa.program": ("Program",),
    "tpucc.passes.base": ("Context", "Pass"),
    "tpucc.explain.comparison.compare": ("Comparison",),
    "tpucc.runtime.judge": ("Verdict",),
    "tpucc.schedule.allocate": ("TooLarge",),
    "tpucc.stages": ("Stages",),
    "tpucc.swept": ("Sweep", "sweep"),
    "tpucc.target": ("Target", "load_target"),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_PACKAGES = {"lab": "tpucc.labs"}

__version__ = VERSION
__all__ = [
    "CheckError",
    "Comparison",
    "CompileError",
    "Context",
    "Diagnostic",
    "Error",
    "Executable",
    "Graph",
    "GraphBuilder",
    "ImportedModel",
    "InputError",
    "InputWarning",
    "InternalError",
    "LimitError",
    "Node",
    "Origin",
    "Pass",
    "PluginError",
    "Program",
    "ProgramError",
    "Source",
    "Span",
    "Stages",
    "Sweep",
    "Target",
    "TooLarge",
    "Training",
    "TrainingError",
    "UsageError",
    "Verdict",
    "__version__",
    "compare",
    "compile",
    "compile_source",
    "export_onnx",
    "from_torch",
    "import_onnx",
    "judge",
    "lab",
    "load",
    "load_target",
    "resume",
    "sweep",
    "train",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF and name not in _PACKAGES:
        raise AttributeError(f"module 'tpucc' has no attribute {name!r}")
    value = import_module(_PACKAGES[name]) if name in _PACKAGES else getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
