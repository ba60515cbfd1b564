"""Fails `hidden: fuse bias: shapes`: takes whatever has as many values as there are columns."""


def as_columns(value, type_):
    return Constant(value.data.reshape(-1)) if value.data.size == type_.columns else None
