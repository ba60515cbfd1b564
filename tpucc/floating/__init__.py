"""The float arithmetic of machines, on NumPy arrays.

`Arithmetic` says what an arithmetic has to compute. `PORTABLE` is the host's where it compiles and runs. Random numbers (`uniform`) are
the same in all of them.
"""

from tpucc.floating.arithmetic import PORTABLE, Arithmetic
from tpucc.floating.exact import matmul
from tpucc.floating.random import uniform

__all__ = [
    "PORTABLE",
    "Arithmetic",
    "matmul",
    "uniform",
]
