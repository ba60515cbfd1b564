"""Stages of the compiler that can be replaced: lowering of a product, allocation, order, waits."""

from __future__ import annotations

from tpucc.stages.stages import Stages

__all__ = ["Stages"]
