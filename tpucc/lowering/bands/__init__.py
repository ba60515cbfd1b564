"""Feature maps computed in horizontal bands: the operators that can be, the lines that a band reads, its cost, and the choice of bands."""
