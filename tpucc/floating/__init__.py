"""The float arithmetic of machines, on NumPy arrays.

`Arithmetic` is what an arithmetic computes. `PORTABLE` is the host's where it compiles and runs.
"""

from tpucc.floating.arithmetic import PORTABLE, Arithmetic
from tpucc.floating.exact import matmul

__all__ = [
    "PORTABLE",
    "Arithmetic",
    "matmul",
]
