"""Programs on the hardware of `tpucc.rtl`, beside the simulator: the same rows in the same cycles, or the first signal that differs."""
