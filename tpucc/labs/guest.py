"""Runs a submission in a process of its own: one request after the other, each a call of one of its functions.

This file is started by its path, with nothing of tpucc on Python's path but a copy without reference solutions. A request is a pickle of
(function, arguments, seconds of processor time, seconds by the clock, those of a call that only waits) from the grader on standard input,
after its length in eight bytes. An answer is MessagePack in the same frame on what was standard output: `{"value": …}`, or
`{"kind": …, "message": …, "frames": …}` where there is none; `cpu` has the seconds of processor time that it took. What the submission
prints goes to standard error, before the answer.
Whatever the submission does here, it can only answer wrongly: nothing in this process knows what is right.
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import json
import math
import os
import pickle
import signal
import struct
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from types import FrameType, ModuleType
from typing import Any, BinaryIO

LONGEST = 4 * 2**20
"""Bytes of the longest answer."""
MOST = 200_000
"""Values in the lists and dicts of an answer; arrays have as many as there is room for."""
DEEPEST = 20
"""Lists and dicts inside each other, in an answer."""
FRAMES = 10
"""Calls that are told of an exception: as many of the first as of the last."""
OWN = ("time", "ended", "result", "wrong", "file")
"""Kinds of failures that are no exceptions: it took too long, its process ended, its result has another form than was asked for or a wrong
value, a file is wrong."""
LOADING = 10.0
"""Seconds of processor time in which a submission's file must be loaded."""
BY_THE_CLOCK = 5
"""A limit of processor time, as often by the clock, ends what only waits. It is long because a busy machine lets everybody wait."""
WAITING = 10.0
"""Seconds by the clock after which a call is ended that has computed for less than `IDLE` of them: no machine is so busy that it holds up a
call by so much, and what it waits for doesn't come."""
IDLE = 0.01


MACHINES = {
    "x86_64": (0xC000003E, 56, 435, (29, 64, 68, 240, 248, 249, 250, 272, 308, 319, 447)),
    "aarch64": (0xC00000B7, 220, 435, (194, 190, 186, 180, 217, 218, 219, 97, 268, 279, 447)),
}
"""By a machine's name, as in Linux's `audit.h` and `unistd.h`: what a filter calls it, its `clone` and `clone3`, and the calls that are
refused: `shmget`, `semget`, `msgget`, `mq_open`, `add_key`, `request_key`, `keyctl`, `unshare`, `setns`, `memfd_create`, `memfd_secret`.
What the first seven make outlives its process; no limit counts the memory of the first and the last two."""
NAMESPACES = 0x7E020000
"""The flags of `clone` that make namespaces."""


def main() -> None:
    """Answers requests until there are no more."""
    config = json.loads(sys.argv[1])
    if "end" in config:
        _end_all(config["end"])
        return
    requests, answers = _streams()
    sys.path[:0] = config["paths"]
    sys.dont_write_bytecode = not config["warm"]
    for name in ("numpy", "msgspec", *config["modules"]):
        importlib.import_module(name)
    if config["warm"]:
        return
    _restrict(config)
    if "probe" in config:
        _send(answers, {"value": _seen(config["probe"])})
        return
    _serve(config["file"], requests, answers)


def _streams() -> tuple[BinaryIO, BinaryIO]:
    """The two ends of the conversation, under other numbers; standard input is empty, standard output is standard error."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return requests, answers


def _restrict(config: dict[str, Any]) -> None:
    """Another user, where the grader is root, and limits that can't be raised again."""
    if config["user"] is not None:
        os.setgroups([])
        os.setresgid(config["user"], config["user"], config["user"])
        os.setresuid(config["user"], config["user"], config["user"])
    try:
        import resource
    except ImportError:  # Windows has none
        return
    for name, most in config["limits"].items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(number, (most, most))
    _refuse_calls()


def _refuse_calls() -> bool:
    """Lets the kernel refuse the calls of `MACHINES`, and new namespaces, to this process and all that it starts. False where it can't."""
    machine = MACHINES.get(os.uname().machine) if sys.platform == "linux" and sys.maxsize > 2**32 else None
    try:
        import ctypes

        call = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
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


def _serve(file: str, requests: BinaryIO, answers: BinaryIO) -> None:
    begun = time.process_time()
    with _alarm(LOADING, LOADING * BY_THE_CLOCK, WAITING, file, answers):
        module, failure = _loaded(file)
    _send(answers, (failure or {"value": None}) | _said(begun))
    while module is not None and (head := requests.read(8)):
        function, arguments, seconds, clock, waiting = pickle.loads(requests.read(int.from_bytes(head, "big")))
        begun = time.process_time()
        with _alarm(seconds, clock, waiting, file, answers):
            answer = _answer(module, file, function, arguments)
        _send(answers, answer | _said(begun))


def _said(begun: float) -> dict[str, Any]:
    """Hands on what the submission has printed; returns how much processor time it took."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the submission may have closed or replaced it
            stream.flush()
    return {"cpu": time.process_time() - begun}


@contextmanager
def _alarm(seconds: float, clock: float, waiting: float, file: str, answers: BinaryIO) -> Iterator[None]:
    """After so many seconds of processor time, or so many by the clock, answers where the submission is, and ends this process. One that
    only waits has `waiting` seconds by the clock.

    The grader ends it by the clock too, and the kernel a second later where no line of Python is reached: this only says where.
    """
    if not hasattr(signal, "setitimer"):  # Windows has none
        yield
        return
    begun, first = time.process_time(), min(waiting, clock)
    rest = [clock - first]

    def late(number: int, frame: FrameType | None) -> None:
        which = "processor" if number == signal.SIGPROF else "idle" if any(rest) else "clock"
        if which == "idle" and time.process_time() - begun > IDLE * waiting:
            signal.setitimer(signal.ITIMER_REAL, rest.pop())
            return
        found = _frames(traceback.walk_stack(frame), file, outwards=True)
        _send(answers, {"kind": "time", "message": which, **found, **_said(begun)})
        os._exit(1)

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, first))
    _end_after(begun + seconds + 1)
    for number, timer, most in timers:
        signal.signal(number, late)
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for _, timer, _ in timers:
            signal.setitimer(timer, 0)


def _end_after(seconds: float) -> None:
    """Lets the kernel end this process when it has had so much processor time in all."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    most = math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _loaded(file: str) -> tuple[ModuleType | None, dict[str, Any] | None]:
    """The module of a file, or why there is none."""
    sys.path.insert(0, os.path.dirname(file))
    spec = importlib.util.spec_from_file_location("submission", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        return None, _failure(error, file)
    return module, None


def _answer(module: ModuleType, file: str, function: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    try:
        if not function:
            return {"value": sorted(name for name, value in vars(module).items() if callable(value) and not name.startswith("_"))}
        found = getattr(module, function, None)
        if not callable(found):
            message = f"{os.path.basename(file)} defines no function {function}{_near(module, function)}"
            return {"kind": "result", "message": message}
        return {"value": _plain(found(*arguments), count(1))}
    except Unfit as error:
        return {"kind": "result", "message": str(error)}
    except BaseException as error:
        return _failure(error, file)


def _near(module: ModuleType, function: str) -> str:
    import difflib

    near = difflib.get_close_matches(function, [name for name, value in vars(module).items() if callable(value)], 1)
    return f"; did you mean {near[0]}?" if near else ""


class Unfit(Exception):
    """A result that can't be handed back."""


def _plain(value: Any, counted: Iterator[int], depth: int = 0) -> Any:
    """A result as values that travel: arrays as their bytes, a graph of tpucc's as its text, a gradient as the graph that computes it.

    `counted` numbers the values. Raises `Unfit` for what can't travel, and for more than `MOST` values.
    """
    import numpy as np

    if depth > DEEPEST:
        raise Unfit(f"the result is nested more than {DEEPEST} deep")
    if next(counted) > MOST:
        raise Unfit(f"the result has more than {MOST:,} values in lists; return an array")
    if value is None or isinstance(value, bool | int | float | str):
        return value if type(value) in (bool, int, float, str) or value is None else _base(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise Unfit(f"the result has an array of {value.dtype}")
        return {"dtype": value.dtype.str, "shape": list(value.shape), "data": value.tobytes()}
    if isinstance(value, np.generic):
        return value.item()
    return _several(value, counted, depth + 1)


def _several(value: Any, counted: Iterator[int], depth: int) -> Any:
    """A result that is made of others."""
    if isinstance(value, dict):
        return {"dict": [[_plain(key, counted, depth), _plain(entry, counted, depth)] for key, entry in value.items()]}
    if type(value).__module__ == "tpucc.ir.graph" and type(value).__name__ == "Graph":
        from tpucc.ir.printer import print_graph

        return {"graph": print_graph(value, with_data=True)}
    if type(value).__module__ == "tpucc.ops.gradient" and type(value).__name__ == "Value":
        return _plain(value.builder.graph(value), counted, depth)
    if isinstance(value, list | tuple) or hasattr(value, "__iter__"):
        return [_plain(entry, counted, depth) for entry in value]
    name = f"a {type(value).__name__}"
    raise Unfit(f"returned {name}" if depth == 1 else f"returned values with {name} in them, which can't be handed back")


def _base(value: Any) -> Any:
    """A number or a string of a class of its own, such as an engine, as Python's."""
    return next(kind(value) for kind in (bool, int, float, str) if isinstance(value, kind))


def _failure(error: BaseException, file: str) -> dict[str, Any]:
    """What was raised, in words, with the submission's own calls that led there; of a syntax error, its place in the line too."""
    name = type(error).__name__[:100]
    told = {"kind": f"class {name}" if name in OWN else name, **_frames(traceback.walk_tb(error.__traceback__), file)}
    try:
        if isinstance(error, SyntaxError) and str(error.filename).startswith(os.path.dirname(file)):
            return {**told, "message": str(error.msg)[:2000], "refused": [error.filename, error.lineno or 0, error.offset or 0]}
        return {**told, "message": str(error)[:2000]}
    except BaseException:
        return {**told, "message": "(its text can't be had)"}


def _frames(calls: Iterable[tuple[FrameType, int]], file: str, outwards: bool = False) -> dict[str, Any]:
    """Those of the calls that are in the submission's files, the outermost first, and how many are left out of their middle."""
    folder = os.path.dirname(file) + os.sep
    codes = [(frame.f_code, line) for frame, line in calls if frame.f_code.co_filename.startswith(folder)]
    own = [[code.co_filename[:1000], line, code.co_name[:100]] for code, line in (reversed(codes) if outwards else codes)]
    if len(own) <= FRAMES:
        return {"frames": own, "left_out": 0}
    return {"frames": own[: FRAMES // 2] + own[-FRAMES // 2 :], "left_out": len(own) - FRAMES}


def _send(answers: BinaryIO, answer: dict[str, Any]) -> None:
    import msgspec

    try:
        data = msgspec.msgpack.encode(answer)
    except (TypeError, ValueError, OverflowError, UnicodeError) as error:
        data = msgspec.msgpack.encode({"kind": "result", "message": f"the result can't be handed back: {error}"})
    if len(data) > LONGEST:
        data = msgspec.msgpack.encode({"kind": "result", "message": f"the result is larger than {LONGEST:,} bytes"})
    answers.write(len(data).to_bytes(8, "big") + data)
    answers.flush()


def _seen(secrets: list[str]) -> dict[str, Any]:
    """What a submission could reach from here: which of the grader's paths, how many processes of others, whether as root, a network, and
    what outlives it."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; an address for documentation, RFC 5737
            network = True
        except OSError:
            network = False
    own = [os.getpid(), os.getppid()]
    try:
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        processes = []
    readable = [path for path in secrets if os.access(path, os.R_OK)]
    others = len([number for number in processes if number not in own and number != 1])
    return {"readable": readable, "others": others, "user": os.getuid(), "network": network, "filtered": _refuse_calls()}


def _end_all(user: int) -> None:
    """Ends every process of a user."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.kill(-1, signal.SIGKILL)


if __name__ == "__main__":
    main()
