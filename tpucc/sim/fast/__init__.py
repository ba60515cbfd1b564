"""Execution by large products: the same bits as `tpucc.sim.interpret`, much faster.

It knows v1's instructions and is for v1 alone: it is part of that machine, and goes to `tpucc.machines.v1` with its layers and lowerings.
"""
