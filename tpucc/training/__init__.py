"""Training: the step graph, run again and again over batches of examples; weights, state and history as files."""
