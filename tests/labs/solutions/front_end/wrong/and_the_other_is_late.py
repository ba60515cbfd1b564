"""Fails `one shape`: reads the other operand ahead."""


def reference(attributes, operands):
    a, b = np.broadcast_arrays(*operands)
    size = a.shape[attributes.axis] - attributes.by
    late, early = slice(attributes.by, attributes.by + size), slice(0, size)
    a, b = np.moveaxis(a, attributes.axis, 0), np.moveaxis(b, attributes.axis, 0)
    a, b = (a[late], b[early]) if AHEAD == "b" else (a[early], b[late])
    return np.moveaxis(FUNCTION(a, b), 0, attributes.axis)
