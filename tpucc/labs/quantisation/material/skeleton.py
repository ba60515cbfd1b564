"""Lab 3: real numbers as integers. Write these five functions; helpers of your own are welcome in this file."""

import numpy as np

LOW, HIGH = {{low}}, {{high}}  # integers of {{bits}} bits; weights are -HIGH to HIGH


def parameters(low, high):
    """Scale and zero point of the integers that cover low to high, and 0: `(scale, zero_point)`."""
    raise NotImplementedError


def calibrate(samples):
    """Scale and zero point for a tensor of which `samples` are examples: `(scale, zero_point)`."""
    return parameters(samples.min(), samples.max())


def quantise(x, scale, zero_point):
    """The integers of a float32 array: divide, round (ties {{ties_go}}), add the zero point, saturate.

    This one cuts off what is behind the point, does not saturate, and returns no integers.
    """
    with np.errstate(over="ignore"):  # a quotient may be infinite
        return np.trunc(x / np.float32(scale)) + zero_point


def requantise(accumulators, multiplier, zero_point):
    """The integers of int32 accumulators [M, N], which are multiplied by the float32 `multiplier` [N] of their column."""
    raise NotImplementedError


def quantise_weights(weights):
    """The integers of float32 weights [K, N], and the scale of each column: `(integers, scales)`."""
    raise NotImplementedError
