"""Networks of programs/ as one writes and trains them by hand, in NumPy's float32: what the speed of training is compared with."""
