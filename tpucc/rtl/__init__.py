"""TPU v1's machine as hardware, in PyRTL: one unit a file, from the processing element to the chip. It needs the extra `tpucc[rtl]`."""
