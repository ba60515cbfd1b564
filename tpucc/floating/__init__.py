"""The float arithmetic of machines, on NumPy arrays.

`Arithmetic` says what an arithmetic has to compute. `PORTABLE` is the host's where it compiles and runs, `Machine` computes as a matrix
unit for bfloat16. Random numbers (`uniform`) are the same in all of them.
"""

from tpucc.floating.arithmetic import PORTABLE, Arithmetic, Machine, Operand
from tpucc.floating.bfloat16 import round_to_bfloat16
from tpucc.floating.exact import Rounded, matmul
from tpucc.floating.random import uniform

__all__ = [
    "PORTABLE",
    "Arithmetic",
    "Machine",
    "Operand",
    "Rounded",
    "matmul",
    "round_to_bfloat16",
    "uniform",
]
