"""not_equal: where one value is not equal to the other; `a != b`."""

from __future__ import annotations

import numpy as np

from tpucc.ops.comparisons import comparison

OP = comparison("not_equal", "!=", np.not_equal, "Equal", "Not")
