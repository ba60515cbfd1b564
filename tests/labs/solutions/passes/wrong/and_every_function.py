"""Fails `hidden: fuse activation: functions`: fuses functions that this term doesn't have."""

FUNCTIONS = ("relu", "leaky_relu", "relu6", "tanh", "sigmoid", "elu", "gelu", "silu", "hard_sigmoid", "hard_swish")
