"""Lab 3, a solution: the machine's arithmetic with the term's ties, and ranges that leave out what lies far away."""

import numpy as np

LOW, HIGH = {{low}}, {{high}}
TIES = "{{ties_go}}"
SYMMETRIC = {{symmetric}}
SMALLEST = np.finfo(np.float32).tiny
DEFECTS = 1000


def rounded(x):
    x = np.asarray(x, np.float64)
    if "even" in TIES:
        return np.rint(x)
    size = np.floor(np.abs(x) + 0.5) if "farther" in TIES else np.ceil(np.abs(x) - 0.5)
    return np.copysign(size, x)


def parameters(low, high):
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    scale = np.float32(max(-low, high) / HIGH if SYMMETRIC else (high - low) / (HIGH - LOW))
    if scale < SMALLEST:
        return 2.0**-24, 0
    return float(scale), 0 if SYMMETRIC else int(np.clip(rounded(LOW - low / float(scale)), LOW, HIGH))


def calibrate(samples):
    values = np.sort(samples[np.isfinite(samples)].astype(np.float64))
    if not len(values):
        return parameters(0, 0)
    few = len(values) // DEFECTS
    return parameters(values[few], values[len(values) - 1 - few])


def saturated(x, zero_point):
    return np.clip(rounded(x) + zero_point, LOW, HIGH).astype(np.int32)


def quantise(x, scale, zero_point):
    with np.errstate(over="ignore"):
        return saturated(x.astype(np.float32) / np.float32(scale), zero_point)


def requantise(accumulators, multiplier, zero_point):
    with np.errstate(over="ignore"):
        return saturated(accumulators.astype(np.float32) * np.asarray(multiplier, np.float32), zero_point)


def quantise_weights(weights):
    scales = np.abs(weights).max(axis=0, initial=0) / np.float32(HIGH)
    scales = np.where(scales < SMALLEST, np.float32(1), scales).astype(np.float32)
    return np.clip(rounded(weights / scales), -HIGH, HIGH).astype(np.int32), scales
