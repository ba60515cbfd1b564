"""Lab 9: a race. Define any of `rewrite`, `lower_fc`, `lower_conv`, `allocate`, `order` and `synchronise`; what isn't here is plain."""

ACCUMULATORS = {{target.accumulator_rows}}  # rows; a stage that gets a layer finds them in layer.target.accumulator_rows
FETCH = {{target.tile_fetch_cycles}}  # cycles until a tile of weights has come


def rewrite(graph):
    """The graph with less to do: the same inputs, the same outputs, the same values.

    `graph.nodes` are in an order in which every node stands behind what it reads. This one changes nothing.
    """
    return graph
