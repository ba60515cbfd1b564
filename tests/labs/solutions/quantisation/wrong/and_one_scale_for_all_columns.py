"""Fails `weights`: the largest weight of the matrix decides for all columns."""


def quantise_weights(weights):
    scales = np.full(weights.shape[1], np.abs(weights).max(initial=0), np.float32) / np.float32(HIGH)
    scales = np.where(scales < SMALLEST, np.float32(1), scales).astype(np.float32)
    return np.clip(rounded(weights / scales), -HIGH, HIGH).astype(np.int32), scales
