"""ones: a constant of ones."""

from __future__ import annotations

from tpucc.ops.zeros import filled

OP = filled("ones", 1.0)
