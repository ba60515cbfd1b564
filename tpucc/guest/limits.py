"""What a child may use, and how long one call may take: on the child's side.

A call has seconds of processor time, and more by the clock, because a busy machine lets everybody wait. A call that only waits is ended
sooner. When time is over, the child says where it is, and ends. In a call into C, no line of Python is reached: then `faulthandler`, which
is written in C, writes where the code is, or the kernel ends the process. What no limit bounds, the kernel refuses.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import math
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

MACHINES = {
    "x86_64": (0xC000003E, 56, 435, 41, (29, 64, 68, 240, 248, 249, 250, 272, 308, 319, 447, 425, 321, 298)),
    "aarch64": (0xC00000B7, 220, 435, 198, (194, 190, 186, 180, 217, 218, 219, 97, 268, 279, 447, 425, 280, 241)),
}
"""By a machine's name, as in Linux's `audit.h` and `unistd.h`: what a filter calls it, its `clone`, `clone3` and `socket`, and the calls
that are refused: `shmget`, `semget`, `msgget`, `mq_open`, `add_key`, `request_key`, `keyctl`, `unshare`, `setns`, `memfd_create`,
`memfd_secret`, `io_uring_setup`, `bpf`, `perf_event_open`. What the first seven make outlives its process; no limit counts the memory of
the first and of the two of `memfd`; the last three are ways past the other refusals."""
FAMILIES = (1, 2, 10)
"""The families of sockets that a child may open, which the jail's network bounds: UNIX, INET and INET6. Others, as VSOCK, reach the
host."""
DROP_OF_BOUND, CAPABILITIES, VERSION_3 = 24, 64, 0x20080522
"""Linux's `prctl.h` and `capability.h`: what takes a capability out of the bounding set, how many there may be, and the form of
`capset`."""
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


def drop_capabilities() -> None:
    """Takes all capabilities out of the bounding set, so that no program which is started can have one. Needs CAP_SETPCAP."""
    with suppress(OSError, AttributeError):
        prctl = ctypes.CDLL(None).prctl
        for capability in range(CAPABILITIES):
            prctl(DROP_OF_BOUND, *(ctypes.c_ulong(each) for each in (capability, 0, 0, 0)))


def give_none_on() -> None:
    """Lets programs that are started inherit no capability."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).capset(struct.pack("Ii", VERSION_3, 0), bytes(24))


def _filter(machine: int, clone: int, clone3: int, socket: int, refused: tuple[int, ...]) -> bytes:
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
    left = len(FAMILIES)
    lines += [(equal, 0, left + 3, socket), (load, 0, 0, first_argument)]
    lines += [(equal, left - 1 - place, int(place == left - 1), family) for place, family in enumerate(FAMILIES)]
    lines += [(end, 0, 0, allow), refuse]
    lines += [(equal, 0, 3, clone), (load, 0, 0, first_argument), (any_bit, 0, 1, NAMESPACES), refuse, (end, 0, 0, allow)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

GRACE = 0.5
"""Seconds more, in which a child says where it was when its time was over."""
KERNEL = 1
"""Seconds of processor time more, after which the kernel ends a process that has reached no line of Python."""
IDLE = 0.01
"""A call that has computed for a smaller share of the time than this only waits."""
SHARE = 0.9
"""How much of the memory that is free the user's own code may take."""
OWN_PROCESSES = 256
"""Processes and threads that the user's own code may start."""


@dataclass(frozen=True)
class Duration:
    """How long one call may take: seconds of processor time, seconds by the clock, and those by the clock of a call that only waits."""

    processor: float
    clock: float
    waiting: float


def own_limits() -> dict[str, int]:
    """The limits of code of the user's own, by the names of `resource`: most of the memory that is free now, files of 1 GiB, and so many
    processes more than the user has. Where the system doesn't say what there is, it has no such limit."""
    found = {"FSIZE": 2**30, "CORE": 0}
    with suppress(OSError, ValueError, StopIteration), open("/proc/meminfo", "rb") as stream:
        found["AS"] = 2**30 + int(SHARE * 1024 * next(int(line.split()[1]) for line in stream if line.startswith(b"MemAvailable:")))
        found["NPROC"] = OWN_PROCESSES + sum(map(_tasks, os.scandir("/proc")))
    return found


def _tasks(entry: os.DirEntry[str]) -> int:
    """The threads of a process of this user, of an entry of /proc; 0 for any other."""
    with suppress(OSError):
        if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
            return len(os.listdir(f"{entry.path}/task"))
    return 0


def restrict(user: int | None, limits: Mapping[str, int], *, refuses_calls: bool) -> None:
    """Another user, where the grader is root, and limits that can't be raised again."""
    if user is not None:
        drop_capabilities()
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        give_none_on()
    if resource is None:
        return
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(number, (most, most))
    if refuses_calls:
        refuse_calls()


@contextmanager
def limited(most: Duration, late: Callable[[str, FrameType | None], None], told: int) -> Iterator[None]:
    """Calls `late` with the limit that is over, `processor`, `clock` or `idle`, and where the code is; it ends the process. Where no line
    of Python is reached, `faulthandler` writes to the descriptor `told`, and the process ends."""
    if resource is None:
        yield
        return
    begun, first = time.process_time(), min(most.waiting, most.clock)
    computed, slept, rest = begun, _slept(), most.clock - first

    def ring(number: int, frame: FrameType | None) -> None:
        """By the clock it rings again and again, as long as time is left, and something was computed since it rang last or would have
        been: a process that has never slept waits for nothing but a busy machine."""
        nonlocal computed, slept, rest
        which = "processor" if number == signal.SIGPROF else "idle" if rest > 0 else "clock"
        before, computed, sleeps, slept = computed, time.process_time(), slept, _slept()
        if which == "idle" and (computed - before > IDLE * most.waiting or slept == sleeps):
            again = min(most.waiting, rest)
            rest -= again
            signal.setitimer(signal.ITIMER_REAL, again)
            return
        late(which, frame)

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, most.processor), (signal.SIGALRM, signal.ITIMER_REAL, first))
    _end_after(begun + most.processor + KERNEL)
    faulthandler.enable(told)
    faulthandler.register(signal.SIGXCPU, told, all_threads=False, chain=True)
    for number, timer, seconds in timers:
        signal.signal(number, ring)
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for _, timer, _ in timers:
            signal.setitimer(timer, 0)


def processor_time() -> float:
    """Seconds of processor time that this process has had, and the processes that it has started and waited for."""
    if resource is None:
        return time.process_time()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _slept() -> int:
    """How often this process has given the processor away to wait for something."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def _end_after(seconds: float) -> None:
    """Lets the kernel end this process when it has had so much processor time in all."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    most = math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
