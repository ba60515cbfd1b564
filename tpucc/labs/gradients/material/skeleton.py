"""Lab 10: gradients. Write `smooth`, `shaped` and `kinked`; helpers of your own are welcome in this file."""

SLOPE = "{{slope}}"  # which of two slopes counts at a kink


def smooth(g):
    """The gradient of {{smooth}}: {{smooth_formula}}.

    `g.operands` are the operands ({{smooth_operands}}), `g.result` is y, `g.dy` the gradient of y, `g.attributes` the attributes.
    Returns a list with a gradient for each operand, of that operand's shape. This one says that y depends on nothing, which is wrong.
    """
    return [operand.zeros() for operand in g.operands]


def shaped(g):
    """The gradient of {{shaped}}: {{shaped_formula}}. The operands are {{shaped_operands}}."""
    return [operand.zeros() for operand in g.operands]


def kinked(g):
    """The gradient of {{kinked}}: {{kinked_formula}}. The operands are {{kinked_operands}}."""
    return [operand.zeros() for operand in g.operands]
