"""less_equal: where one value is at most the other; `a <= b`."""

from __future__ import annotations

import numpy as np

from tpucc.ops.comparisons import comparison

OP = comparison("less_equal", "<=", np.less_equal, "LessOrEqual")
