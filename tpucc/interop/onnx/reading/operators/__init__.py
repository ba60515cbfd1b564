"""The operators of ONNX: one row each, a family a file."""

from __future__ import annotations

from importlib import import_module

_NAMES = "convolutions einsum elements gather_elements machine_learning normalisation places products quantised recurrent reductions"
FAMILIES = tuple(import_module(f"{__name__}.{name}") for name in f"{_NAMES} resizing shapes".split())
"""The files; each adds its rows when it is imported."""
