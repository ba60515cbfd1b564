"""Sweeps: a model compiled and timed for every combination of values of the machine's numbers and the source's params."""
