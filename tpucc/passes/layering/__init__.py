"""From an operator to its layer: one file for each family of layers."""
