"""Fails `one shape`: computes in float64."""


def reference(attributes, operands):
    a, b = np.broadcast_arrays(*(x.astype(float) for x in operands))
    size = a.shape[attributes.axis] - attributes.by
    late, early = slice(attributes.by, attributes.by + size), slice(0, size)
    a, b = np.moveaxis(a, attributes.axis, 0), np.moveaxis(b, attributes.axis, 0)
    a, b = (a[late], b[early]) if AHEAD == "a" else (a[early], b[late])
    return np.moveaxis(FUNCTION(a, b), 0, attributes.axis)
