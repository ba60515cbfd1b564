"""maximum: the larger of two values, element by element."""

from __future__ import annotations

import numpy as np

from tpucc.ops.comparisons import chosen

OP = chosen("maximum", "larger", "max", "largest", np.greater_equal)
