"""The network that is built while a file is read: values, nodes, weights, and what a rule is given."""
