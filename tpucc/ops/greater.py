"""greater: where one value is greater than the other; `a > b`."""

from __future__ import annotations

import numpy as np

from tpucc.ops.comparisons import comparison

OP = comparison("greater", ">", np.greater, "Greater")
