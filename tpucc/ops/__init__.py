"""The operators: one a file, found by name.

`OPS` maps the language's name to the operator. Adding an operator is adding a file that ends in `OP = OpDef(...)`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tpucc.ops.facts import Facts, whole
from tpucc.ops.opdef import Legalisation, OpDef

INTERNAL = frozenset({"arithmetic", "convolution", "input", "linear", "patches", "slice", "weight"})
"""Operators that no call makes: other syntax or a pass does."""

_SHARED = frozenset({"axis", "batch", "erf", "evaluate", "facts", "fused", "opdef", "parts", "rules", "verify", "windows"})
"""The files that define no operator."""


def _load() -> Mapping[str, OpDef[Any]]:
    found: dict[str, OpDef[Any]] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _SHARED):
        operator = getattr(importlib.import_module(f"{__name__}.{name}"), "OP", None)
        if not isinstance(operator, OpDef) or operator.name != name:
            raise TypeError(f"tpucc/ops/{name}.py must end in OP = OpDef(name={name!r}, ...)")
        found[name] = operator
    return MappingProxyType(found)


OPS: Mapping[str, OpDef[Any]] = _load()

_UNKNOWN = whole(batch=None)


def facts_of(op: str) -> Facts:
    """The facts of an operator. A layer, and a name that isn't an operator's, has facts of which none hold."""
    return OPS[op].facts if op in OPS else _UNKNOWN


def legalisation_of(op: str) -> Legalisation | None:
    """How the device computes an operator; None for a layer, and for a name that isn't an operator's."""
    return OPS[op].legalisation if op in OPS else None
