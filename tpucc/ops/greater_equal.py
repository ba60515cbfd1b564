"""greater_equal: where one value is at least the other; `a >= b`."""

from __future__ import annotations

import numpy as np

from tpucc.ops.comparisons import comparison

OP = comparison("greater_equal", ">=", np.greater_equal, "GreaterOrEqual")
