"""The float arithmetic of machines, on NumPy arrays.

`Arithmetic` says what an arithmetic has to compute; `NUMPY` is the host's, `Machine` that of a matrix unit for bfloat16. Random numbers
(`uniform`) and the all-reduce (`all_reduce_mean`) are the same in all of them.
"""

from tpucc.floating.arithmetic import NUMPY, Arithmetic, Machine, Operand
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.floating.exact import Rounded
from tpucc.floating.random import uniform
from tpucc.floating.reduction import all_reduce_mean, all_reduce_steps

__all__ = [
    "NUMPY",
    "Arithmetic",
    "Machine",
    "Operand",
    "Rounded",
    "all_reduce_mean",
    "all_reduce_steps",
    "round_to_bfloat16",
    "uniform",
]
