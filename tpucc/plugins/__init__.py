"""Code that the user brings, passes and stages: it is run with care, and what goes wrong in it is its own."""
