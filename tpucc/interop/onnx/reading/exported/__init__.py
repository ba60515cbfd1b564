"""What `tpucc export` writes, as the operators that it was written of."""
