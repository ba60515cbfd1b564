"""minimum: the smaller of two values, element by element."""

from __future__ import annotations

from operator import le

from tpucc.ops.comparisons import extreme_of_two

OP = extreme_of_two("minimum", "smaller", "min", "smallest", le)
