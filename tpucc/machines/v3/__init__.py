"""v2 with two matrix units: TPU v3."""
