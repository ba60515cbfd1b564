"""From the graph of a step to instructions of the training machine: what the nodes compute is traced, and each part is lowered."""
