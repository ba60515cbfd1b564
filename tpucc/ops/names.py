"""The operators as values, by their names: `from tpucc.ops.names import conv2d, matmul`.

A pass calls them in patterns and in what it builds, and asks them of nodes: `matmul.made(node)`. An operator's file is imported when its
name is first imported from here. The files of operators import each other directly, and never from here.
"""

from __future__ import annotations

from typing import Any

from tpucc.ops import OPS
from tpucc.ops.opdef import OpDef


def __getattr__(name: str) -> OpDef[Any]:
    """The operator of this name. Raises `AttributeError`, which an import statement makes an `ImportError` of."""
    if name not in OPS:
        raise AttributeError(f"there is no operator {name}")
    return OPS[name]
