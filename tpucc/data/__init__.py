"""A source with the files that it names: weights and calibration inputs, arrays in archives."""
