"""Running what was compiled: inputs in batches, a batch on several cores, the host's steps, and the comparison with the references."""
