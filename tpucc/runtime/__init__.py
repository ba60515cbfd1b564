"""Running what was compiled: batches in rounds, a batch on several cores, the host's steps, and the comparison with the references."""
