"""minimum: the smaller of two values, element by element."""

from __future__ import annotations

import numpy as np

from tpucc.ops.comparisons import chosen

OP = chosen("minimum", "smaller", "min", "smallest", np.less_equal)
