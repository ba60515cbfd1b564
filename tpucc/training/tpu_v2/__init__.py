"""TPU v2's core, as far as it is known: its units, and how long work takes them."""
