"""Lab 4: products, tile by tile. Write `lower_fc` and `lower_conv`; helpers of your own are welcome in this file."""

MOST = {{most}}  # rows that an instruction may walk
COLUMNS_STEP = {{columns_step}}  # column blocks are activated {{columns}}
LEVELS_STEP = {{levels_step}}  # a sum takes its levels {{levels}}
HALVES = {{halves}}  # whether the accumulators are two halves, of which one is filled while the other is emptied


def lower_fc(layer):
    """The `.tile` lines of a fully connected layer, as strings.

    This one is right for a layer of one tile and at most MOST rows.
    """
    (rows,), level = layer.shape, layer.levels[0]
    if len(layer.levels) > 1 or len(layer.results) > 1:
        raise NotImplementedError("several tiles")
    return [
        f".groups [{rows}]",
        f"matrix_multiply ub={level.buffer}+{level.start} acc=g0 rows={rows} tile={level.tiles[0]}, switch",
        f"set_configuration block={layer.blocks[0]}",
        f"activate acc=g0 ub={layer.results[0]}+{layer.start} inner={rows}",
    ]


def lower_conv(layer):
    """The `.tile` lines of a convolutional layer, as strings."""
    raise NotImplementedError
