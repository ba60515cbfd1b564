"""equal: where one value is equal to the other; `a == b`."""

from __future__ import annotations

import numpy as np

from tpucc.ops.comparisons import comparison

OP = comparison("equal", "==", np.equal, "Equal")
