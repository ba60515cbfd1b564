"""The simulated machine: execution and time. It knows nothing of operators or layers."""
