"""Fails `a program that is wrong`: says what is wrong, and not where."""


def infer(attributes, types):
    require_kinds(attributes, types)
    rank = max(type_.rank for type_ in types)
    a, b = ((1,) * (rank - type_.rank) + type_.shape for type_ in types)
    for m, n in zip(a, b, strict=True):
        if m != n and 1 not in (m, n):
            raise RuleError("E0302", "{0} and {1} don't broadcast", about=(0, 1), help=f"sizes {m} and {n} differ")
    by, axis = attributes.by, attributes.axis
    if not -rank <= axis < rank:
        raise RuleError("E0304", f"axis {axis} is out of range", about=(), help=f"the common shape has {rank} axes")
    if a[axis] != b[axis] and not REPEATS:
        raise RuleError("E0302", "sizes differ along the axis", about=(0, 1))
    if by < 0:
        raise RuleError("E0307", "by must be at least 0", about=("by",))
    shape = [max(pair) for pair in zip(a, b, strict=True)]
    if by >= shape[axis]:
        raise RuleError("E0308", f"every size must be at least 1; the axis has {shape[axis]}", about=("by",))
    shape[axis] -= by
    return f32(*shape)
