"""v1 with two matrix units."""
