"""A weight-stationary systolic array, processing element by processing element and cycle by cycle.

It shares nothing with the simulator, whose timing model knows three numbers of the array: a row a cycle, so many cycles to shift a tile
in, so many to fill and drain. Here the three come out of registers that hold numbers (Jouppi et al., ISCA 2017, section 2; H. T. Kung,
"Why systolic architectures?", Computer 15(1), 1982):

    for cycle in simulate([Multiply(x, tile=Tile(w))], rows=4, columns=4):
        print(cycle.number, cycle.sums)

`docs/array.md` says how its cycles map to those of a `Target`.
"""

from tpucc.systolic.array import simulate
from tpucc.systolic.state import NONE, Cycle, Multiply, Tile

__all__ = ["NONE", "Cycle", "Multiply", "Tile", "simulate"]
