"""Fails `hidden: ties`: rounds the sum, so that with an odd zero point a tie goes the other way."""


def saturated(x, zero_point):
    return np.clip(rounded(x.astype(np.float64) + zero_point), LOW, HIGH).astype(np.int32)
