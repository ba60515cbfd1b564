"""Calls of the system that the kernel refuses a child: what they make outlives its process, or no limit counts its memory."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

MACHINES = {
    "x86_64": (0xC000003E, 56, 435, (29, 64, 68, 240, 248, 249, 250, 272, 308, 319, 447)),
    "aarch64": (0xC00000B7, 220, 435, (194, 190, 186, 180, 217, 218, 219, 97, 268, 279, 447)),
}
"""By a machine's name, as in Linux's `audit.h` and `unistd.h`: what a filter calls it, its `clone` and `clone3`, and the calls that are
refused: `shmget`, `semget`, `msgget`, `mq_open`, `add_key`, `request_key`, `keyctl`, `unshare`, `setns`, `memfd_create`, `memfd_secret`.
What the first seven make outlives its process; no limit counts the memory of the first and the last two."""
NAMESPACES = 0x7E020000
"""The flags of `clone` that make namespaces."""


def refuse_calls() -> bool:
    """Lets the kernel refuse the calls of `MACHINES`, and new namespaces, to this process and all that it starts. False where it can't."""
    machine = MACHINES.get(os.uname().machine) if sys.platform == "linux" and sys.maxsize > 2**32 else None
    try:
        call = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return False
    if machine is None:
        return False
    made = _filter(*machine)
    place = ctypes.create_string_buffer(made)
    program = ctypes.create_string_buffer(struct.pack("HP", len(made) // 8, ctypes.addressof(place)))
    zero, one = ctypes.c_ulong(0), ctypes.c_ulong(1)
    no_new_privileges, set_seccomp, by_filter = 38, 22, ctypes.c_ulong(2)
    return bool(call(no_new_privileges, one, zero, zero, zero) == 0 == call(set_seccomp, by_filter, program, zero, zero))


def _filter(machine: int, clone: int, clone3: int, refused: tuple[int, ...]) -> bytes:
    """A filter in the kernel's form (Linux's `filter.h` and `seccomp.h`): code, two distances to jump, and a number, each."""
    load, equal, at_least, any_bit, end = 0x20, 0x15, 0x35, 0x45, 0x06
    number, architecture, first_argument = 0, 4, 16
    allow, error = 0x7FFF0000, 0x00050000
    refuse = (end, 0, 0, error | errno.EPERM)
    lines = [(load, 0, 0, architecture), (equal, 1, 0, machine), refuse]
    lines += [(load, 0, 0, number), (at_least, 0, 1, 0x40000000), refuse]  # a second set of numbers, for pointers of 32 bits
    for each in refused:
        lines += [(equal, 0, 1, each), refuse]
    lines += [(equal, 0, 1, clone3), (end, 0, 0, error | errno.ENOSYS)]  # its flags can't be seen; libraries take `clone` then
    lines += [(equal, 0, 3, clone), (load, 0, 0, first_argument), (any_bit, 0, 1, NAMESPACES), refuse, (end, 0, 0, allow)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)
