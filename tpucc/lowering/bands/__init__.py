"""Maps computed in horizontal bands: which operators can be, what a band reads, what it takes, and where it pays."""
