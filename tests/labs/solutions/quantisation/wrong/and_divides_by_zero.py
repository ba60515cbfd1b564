"""Fails `hidden: dead channels`: a column of zeros gets the scale 0."""


def quantise_weights(weights):
    scales = np.abs(weights).max(axis=0, initial=0) / np.float32(HIGH)
    with np.errstate(all="ignore"):
        return np.clip(rounded(weights / scales), -HIGH, HIGH).astype(np.int32), scales
