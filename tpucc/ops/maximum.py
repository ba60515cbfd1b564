"""maximum: the larger of two values, element by element."""

from __future__ import annotations

from operator import ge

from tpucc.ops.comparisons import extreme_of_two

OP = extreme_of_two("maximum", "larger", "max", "largest", ge)
