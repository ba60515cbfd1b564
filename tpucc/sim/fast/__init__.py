"""Execution by large products: the same bits as `tpucc.sim.interpret`, much faster."""
