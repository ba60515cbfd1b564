"""Fails `ranges`: divides by the number of integers; between them are steps, one fewer."""


def parameters(low, high):
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    scale = np.float32(max(-low, high) / (HIGH + 1) if SYMMETRIC else (high - low) / (HIGH - LOW + 1))
    if scale < SMALLEST:
        return 2.0**-24, 0
    return float(scale), 0 if SYMMETRIC else int(np.clip(rounded(LOW - low / float(scale)), LOW, HIGH))
