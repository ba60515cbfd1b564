"""Fails `hidden: sizes`: the slice that ends at -by is empty for 0."""


def reference(attributes, operands):
    a, b = np.broadcast_arrays(*operands)
    late, early = slice(attributes.by, None), slice(None, -attributes.by)
    a, b = np.moveaxis(a, attributes.axis, 0), np.moveaxis(b, attributes.axis, 0)
    a, b = (a[late], b[early]) if AHEAD == "a" else (a[early], b[late])
    return np.moveaxis(FUNCTION(a, b), 0, attributes.axis)
