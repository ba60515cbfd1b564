"""Fails `hidden: extremes`: what doesn't fit an int32 wraps around."""


def saturated(x, zero_point):
    with np.errstate(invalid="ignore"):
        return np.clip((rounded(x).astype(np.int64) + zero_point).astype(np.int32), LOW, HIGH)
