"""Code that the user brings, passes and stages, as the compiler calls it: its results are checked, and errors name it."""
