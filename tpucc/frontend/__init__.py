"""The front end: source text to syntax tree to operator graph."""
