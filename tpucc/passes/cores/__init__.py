"""A batch divided among cores: where it lies in each value, by a rule for each operator and layer."""
