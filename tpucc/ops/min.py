"""min: the smallest of the values along some axes, or of all of them."""

from __future__ import annotations

import numpy as np

from tpucc.ops.reductions import extreme

OP = extreme("min", "smallest", "minimum", "smaller", np.argmin)
