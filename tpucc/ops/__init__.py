"""The operators: one a file, found by name.

`OPS` maps the language's name to the operator. Adding an operator is adding a file that ends in `OP = OpDef(...)`, or in a
family of it (`families.py`). The file is imported when its operator is first asked for: a model needs few of them. The operators
that only training makes are files of `tpucc/training/operators/`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tpucc.ops.facts import Facts, whole
from tpucc.ops.opdef import Boundary, Legalisation, OpDef

_SHARED = frozenset(
    (
        *("axis", "batch", "comparisons", "evaluate", "facts", "families", "fused", "gradient", "losses", "names", "onnx_form", "opdef"),
        *("parts", "products", "reductions", "rules", "verify", "windows"),
    )
)
"""The files of this package that define no operator."""

_TRAINING = "tpucc.training.operators"
"""The package of the operators that only training makes. A core that stands alone has none of them."""
_FOLDERS = {__name__: __path__, _TRAINING: [str(Path(__file__).parents[1] / "training" / "operators")]}
_PACKAGES = {
    module.name: package
    for package, folders in _FOLDERS.items()
    for module in pkgutil.iter_modules(folders)
    if package != __name__ or module.name not in _SHARED
}
"""The package of each operator, by name."""
_LOADED: dict[str, OpDef[Any] | None] = dict.fromkeys(sorted(_PACKAGES))
"""The operators by name; None before the file is imported."""

INTERNAL = frozenset(
    (
        *("arithmetic", "as_weights", "convolution", "input", "linear", "patches", "shuffle_lanes", "slice", "transposed_convolution"),
        *("weight", *(name for name, package in _PACKAGES.items() if package == _TRAINING)),
    )
)
"""Operators that no call makes: other syntax, a pass, or training does."""


class _Operators(Mapping[str, OpDef[Any]]):
    """`_LOADED`, read only; its files are imported as they are asked for."""

    def __getitem__(self, name: str) -> OpDef[Any]:
        operator = _LOADED[name]
        if operator is None:
            operator = _LOADED[name] = _load(name)
        return operator

    def __contains__(self, name: object) -> bool:
        return name in _LOADED

    def __iter__(self) -> Iterator[str]:
        return iter(_LOADED)

    def __len__(self) -> int:
        return len(_LOADED)


def _load(name: str) -> OpDef[Any]:
    module = f"{_PACKAGES[name]}.{name}"
    operator = getattr(importlib.import_module(module), "OP", None)
    if not isinstance(operator, OpDef) or operator.name != name:
        raise TypeError(f"{module.replace('.', '/')}.py must end in OP = OpDef(name={name!r}, ...)")
    return operator


OPS: Mapping[str, OpDef[Any]] = _Operators()

_UNKNOWN = whole(batch=None)


@contextmanager
def also(operator: OpDef[Any]) -> Iterator[None]:
    """While it lasts there is one operator more, for the whole process: for trying one that has no file here."""
    if operator.name in _LOADED:
        raise ValueError(f"there is an operator {operator.name} already")
    _LOADED[operator.name] = operator
    try:
        yield
    finally:
        del _LOADED[operator.name]


def facts_of(op: str) -> Facts:
    """The facts of an operator. A layer, and a name that isn't an operator's, has facts of which none hold."""
    return OPS[op].facts if op in OPS else _UNKNOWN


def legalisation_of(op: str) -> Legalisation | None:
    """How the device computes an operator; None for a layer, and for a name that isn't an operator's."""
    return OPS[op].legalisation if op in OPS else None


def quantizes(op: str) -> bool:
    """Whether an operator makes integers of real values, and does nothing else."""
    kind = legalisation_of(op)
    return isinstance(kind, Boundary) and kind.into_integers


def dequantizes(op: str) -> bool:
    """Whether an operator makes real values of integers, and does nothing else."""
    kind = legalisation_of(op)
    return isinstance(kind, Boundary) and not kind.into_integers
