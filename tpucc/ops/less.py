"""less: where one value is less than the other; `a < b`."""

from __future__ import annotations

import numpy as np

from tpucc.ops.comparisons import comparison

OP = comparison("less", "<", np.less, "Less")
