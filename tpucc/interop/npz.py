"""Writing npz archives: the same arrays give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np

from tpucc.numerics import AnyArray


def npz_bytes(arrays: Mapping[str, AnyArray]) -> bytes:
    """An uncompressed npz archive with one member for each array, in their order; NumPy stamps members with a fixed date."""
    stream = io.BytesIO()
    np.savez(stream, **dict(arrays))  # type: ignore[arg-type]
    return stream.getvalue()
