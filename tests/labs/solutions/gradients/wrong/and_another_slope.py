"""Fails `kinked: shapes`: at a kink, the slope is that of tpucc's own rule, not the term's."""

SLOPE = {"leaky_relu": "larger", "clip": "smaller", "max_pool": "smaller"}["{{kinked}}"]
