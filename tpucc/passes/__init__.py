"""The passes: one a file, each a function, or a list of rules, from graph to graph. Their order is in `pipeline.py`."""
