"""The record that every instruction of every machine is: 64 bytes with named fields."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[np.void]
"""Instructions: a structured array of `RECORD`."""

RECORD = np.dtype(
    [(name, "u1") for name in ("opcode", "flags", "function", "engines")]
    + [(name, "<u4") for name in ("host", "ub", "ub2", "dest", "acc", "index", "outer", "inner")]
    + [(f"{walk}_{step}", "<u4") for walk in ("ub", "ub2", "dest") for step in ("pitch", "stride")]
    + [(f"window_{walk}", "<u2") for walk in ("outer", "inner")]
)
"""64 bytes, little endian. Fields that an instruction doesn't use are zero; `outer` is 1 where `inner` is used and `outer` isn't.

`host`, `ub`, `ub2`, `dest` and `acc` are first rows; in which memory they lie says the machine (`tpucc.machine.memory.RowPlace`). `index`
is the number of an entry of the queue, of a parameter block, an engine, a host step or a tag. Rows are walked in two dimensions: row (o, i)
of a walk lies at `start + o * pitch + i * stride` for o below `outer` and i below `inner`. A walk without steps of its own is dense: row
`start + o * inner + i`. In a memory of bytes, a value of several bytes lies in as many rows, the lowest bytes first.
"""
FIELDS: tuple[str, ...] = RECORD.names or ()
OPERANDS = tuple(field for field in FIELDS if field not in ("opcode", "flags"))
MAXIMUM = {field: int(np.iinfo(RECORD[field]).max) for field in FIELDS}
"""The largest value of each field."""
