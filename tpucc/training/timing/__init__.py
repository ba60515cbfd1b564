"""The time of a step of training on a machine for floats: its graph in groups of operators, and how long each group takes."""
