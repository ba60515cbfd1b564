"""Fails `samples with defects`: takes the range from the least and the largest sample."""


def calibrate(samples):
    values = np.sort(samples[np.isfinite(samples)].astype(np.float64))
    if not len(values):
        return parameters(0, 0)
    few = 0
    return parameters(values[few], values[len(values) - 1 - few])
