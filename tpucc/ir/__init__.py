"""The graph representation: types, constants, nodes, and the text form."""
