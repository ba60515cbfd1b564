"""Runs a submission in a process of its own: one request after the other, each a call of one of its functions.

This file is started by its path, with nothing of tpucc on Python's path but a copy without reference solutions. A request is a pickle of
(function, arguments, seconds) from the grader on standard input, after its length in eight bytes. An answer is MessagePack in the same
frame on what was standard output: `{"value": …}`, or `{"kind": …, "message": …, "line": …}` where there is none. What the submission prints
goes to standard error. Whatever the submission does here, it can only answer wrongly: nothing in this process knows what is right.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pickle
import sys
from types import ModuleType
from typing import Any, BinaryIO

LONGEST = 4 * 2**20
"""Bytes of the longest answer."""


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


def _serve(file: str, requests: BinaryIO, answers: BinaryIO) -> None:
    module, failure = _loaded(file)
    _send(answers, failure or {"value": None})
    while module is not None and (head := requests.read(8)):
        function, arguments, _ = pickle.loads(requests.read(int.from_bytes(head, "big")))
        _send(answers, _answer(module, file, function, arguments))


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
            return {"kind": "result", "message": message, "line": 0}
        return {"value": _plain(found(*arguments))}
    except BaseException as error:
        return _failure(error, file)


def _near(module: ModuleType, function: str) -> str:
    import difflib

    near = difflib.get_close_matches(function, [name for name, value in vars(module).items() if callable(value)], 1)
    return f"; did you mean {near[0]}?" if near else ""


def _plain(value: Any, depth: int = 0) -> Any:
    """A result as values that travel: arrays as their bytes, a graph of tpucc's as its text, a gradient as the graph that computes it."""
    import numpy as np

    if depth > 20:
        raise TypeError("the result is nested more than 20 deep")
    if value is None or isinstance(value, bool | int | float | str):
        return value if type(value) in (bool, int, float, str) or value is None else _base(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"the result has an array of {value.dtype}")
        return {"dtype": value.dtype.str, "shape": list(value.shape), "data": value.tobytes()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {"dict": [[_plain(key, depth + 1), _plain(entry, depth + 1)] for key, entry in value.items()]}
    if type(value).__module__ == "tpucc.ir.graph" and type(value).__name__ == "Graph":
        from tpucc.ir.printer import print_graph

        return {"graph": print_graph(value, with_data=True)}
    if type(value).__module__ == "tpucc.ops.gradient" and type(value).__name__ == "Value":
        return _plain(value.builder.graph(value), depth + 1)
    if isinstance(value, list | tuple) or hasattr(value, "__iter__"):
        return [_plain(entry, depth + 1) for entry in value]
    raise TypeError(f"the result has a {type(value).__name__}, which can't be handed back")


def _base(value: Any) -> Any:
    """A number or a string of a class of its own, such as an engine, as Python's."""
    return next(kind(value) for kind in (bool, int, float, str) if isinstance(value, kind))


def _failure(error: BaseException, file: str) -> dict[str, Any]:
    """What was raised, in words, with the line of the submission where it passed last."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == file:
        line = error.lineno or 0
    try:
        text = str(error)[:2000]
    except BaseException:
        text = "(its text can't be had)"
    return {"kind": type(error).__name__[:100], "message": text, "line": line}


def _send(answers: BinaryIO, answer: dict[str, Any]) -> None:
    import msgspec

    try:
        data = msgspec.msgpack.encode(answer)
    except (TypeError, ValueError, OverflowError, UnicodeError) as error:
        data = msgspec.msgpack.encode({"kind": "result", "message": f"the result can't be handed back: {error}", "line": 0})
    if len(data) > LONGEST:
        data = msgspec.msgpack.encode({"kind": "result", "message": f"the result is larger than {LONGEST:,} bytes", "line": 0})
    answers.write(len(data).to_bytes(8, "big") + data)
    answers.flush()


def _seen(secrets: list[str]) -> dict[str, Any]:
    """What a submission could reach from here: which of the grader's paths, how many processes of others, whether as root, a network."""
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
    return {"readable": readable, "others": len([n for n in processes if n not in own and n != 1]), "user": os.getuid(), "network": network}


def _end_all(user: int) -> None:
    """Ends every process of a user."""
    import signal

    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.kill(-1, signal.SIGKILL)


if __name__ == "__main__":
    main()
