"""Fails `quantise`: adds a half and rounds down, whatever the term says."""


def rounded(x):
    x = np.asarray(x, np.float64)
    return np.floor(x + 0.5)
