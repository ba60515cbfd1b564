"""The float arithmetic of machines, on NumPy arrays.

`Arithmetic` says what an arithmetic has to compute. `NUMPY` is that of the host where it trains, `PORTABLE` that of the host where it
compiles and runs, and `Machine` that of a matrix unit for bfloat16. Random numbers (`uniform`) and the all-reduce (`all_reduce_mean`) are
the same in all of them.
"""

from tpucc.floating.arithmetic import NUMPY, PORTABLE, Arithmetic, Machine, Operand
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.floating.exact import Rounded, matmul
from tpucc.floating.random import uniform
from tpucc.floating.reduction import all_reduce_mean, all_reduce_steps

__all__ = [
    "NUMPY",
    "PORTABLE",
    "Arithmetic",
    "Machine",
    "Operand",
    "Rounded",
    "all_reduce_mean",
    "all_reduce_steps",
    "matmul",
    "round_to_bfloat16",
    "uniform",
]
