"""Code that the user brings, passes and stages, as the compiler knows it: how it is called, and what is said of it where it fails."""
