"""The child's side of the conversation: loads files of the user's, and calls their functions, one request after the other.

A request is a pickled `Request` on standard input, after its length in eight bytes. An answer is MessagePack in the same frame on what was
standard output: `{"value": …}`, or what went wrong (`_answer_of`); `cpu` has the seconds of processor time that the call took. What the
code prints goes to standard error, before the answer. Whatever the code does here, it can only answer wrongly: nothing in this process
knows what is right. The last thing that a process writes may be the text of `faulthandler` (`limits.py`), in no frame.
"""

from __future__ import annotations

import builtins
import difflib
import importlib
import importlib.util
import os
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.machinery import SourceFileLoader
from types import CodeType, FrameType, ModuleType
from typing import Any, BinaryIO, NoReturn

import msgspec

from tpucc.guest.limits import Duration, limited, processor_time, refuse_calls, restrict
from tpucc.guest.values import packed
from tpucc.plugins.depth import counted
from tpucc.plugins.failures import Failed, Frame, Unfit, failed, own_frames
from tpucc.tasks.worker import when_unread

ENDING = ("_exit", "abort", "execv", "execve")
"""Functions of `os` that end the process without a word; all that are like them call these."""
LEAVE, BUILTINS = os._exit, vars(builtins)
CUT = 2000
"""Characters of a file's name that are sent."""


@dataclass(frozen=True)
class Request:
    """What is asked: a function of a loaded file by its name, or one of tpucc's as `module:function`, which gets the file's module first.

    Without a function, the file `name` is loaded under `key`, where `arguments` are the current folder, Python's path and the arguments of
    the command, or nothing.
    """

    key: str
    function: str
    arguments: tuple[Any, ...]
    most: Duration
    name: str = ""


def serve(config: Mapping[str, Any], requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until there are no more. `config` is what `jails.Jail.config` gives."""
    for name in config["modules"]:
        importlib.import_module(name)
    if config["warm"]:
        return
    restrict(config["user"], config["limits"], refuses_calls=config["refuses_calls"])
    server = _Server(answers, config["longest"], config["most"])
    if "probe" in config:
        server.send({"value": _seen(config["probe"])})
        return
    server.watch_ends()
    when_unread(answers.fileno(), _end_group)
    while head := requests.read(8):
        server.answer(pickle.loads(requests.read(int.from_bytes(head, "big"))))


class _Uncached(SourceFileLoader):
    """Reads the source each time. Python takes a compiled module for the source's if both have one second and one size: a file that is
    edited and run again at once would run as it was."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return counted(code)


def is_python(path: str) -> bool:
    """Whether a file of the user's is executed as Python, by its name; any other is a program."""
    return path.endswith(".py")


def module_of(path: str, name: str) -> ModuleType:
    """The module that a Python file makes, which is executed, or a program of the user's."""
    if not is_python(path):
        from tpucc.guest.programs import program_module  # with the stages, which Python files need not have

        return program_module(path, name)
    spec = importlib.util.spec_from_file_location(name, path, loader=_Uncached(name, path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class _Server:
    """Answers requests. An answer has at most `longest` bytes, and `most` values."""

    def __init__(self, answers: BinaryIO, longest: int, most: int) -> None:
        self._answers, self._longest, self._most = answers, longest, most
        self._modules = dict[str, ModuleType]()
        self._folder = os.sep
        self._process, self._builtins = os.getpid(), dict(BUILTINS)
        self._begun = 0.0

    def answer(self, request: Request) -> None:
        """Answers one request."""
        self._begun = processor_time()
        with limited(self._most_of(request), self._late, self._answers.fileno()):
            try:
                try:
                    answer = {"value": packed(self._result(request), self._most)}
                finally:
                    BUILTINS.update(self._builtins)  # the code may have taken some away that are needed now
            except BaseException as error:
                answer = _answer_of(failed(error, self._is_own))
        if os.getpid() != self._process:
            LEAVE(1)  # the code has forked: what comes now is for one process only
        self._flush()
        self.send(answer | {"cpu": processor_time() - self._begun})

    def send(self, answer: dict[str, Any]) -> None:
        """Writes an answer, or why it can't be."""
        try:
            data = msgspec.msgpack.encode(answer)
        except (TypeError, ValueError, OverflowError, UnicodeError) as error:
            data = msgspec.msgpack.encode({"kind": "result", "message": f"returned what can't be handed back: {error}"})
        if len(data) > self._longest:
            data = msgspec.msgpack.encode({"kind": "result", "message": f"returned more than {self._longest:,} bytes"})
        self._answers.write(len(data).to_bytes(8, "big") + data)
        self._answers.flush()

    def watch_ends(self) -> None:
        """From here on, code that ends this process says so before, and where."""
        for name in ENDING:
            if hasattr(os, name):
                setattr(os, name, _Ends(name, getattr(os, name), self._ends))
        sys.breakpointhook = _no_debugger

    def _most_of(self, request: Request) -> Duration:
        """How long a request may take. While a program computes, this process only waits for it."""
        module = self._modules.get(request.key)
        waits = module is not None and not is_python(str(module.__file__))
        return replace(request.most, waiting=request.most.clock) if waits else request.most

    def _result(self, request: Request) -> Any:
        if not request.function:
            return self._load(request)
        module = self._modules.get(request.key)
        if module is not None:
            self._folder = os.path.dirname(str(module.__file__)) + os.sep
        return function_of(module, request.function)(*request.arguments)

    def _load(self, request: Request) -> list[str]:
        """Loads a file; returns the names that can be called."""
        folder = os.path.dirname(request.name)
        self._folder = folder + os.sep
        if request.arguments:
            place, paths, arguments = request.arguments
            os.chdir(place)
            sys.path[:], sys.argv[:] = paths, arguments
        else:
            sys.path.insert(0, folder)
        module = self._modules[request.key] = module_of(request.name, request.key)
        return sorted(name for name, value in vars(module).items() if not name.startswith("_") and callable(value))

    def _is_own(self, file: str) -> bool:
        return file.startswith(self._folder)

    def _late(self, which: str, frame: FrameType | None) -> NoReturn:
        self._last(Failed("time", which, *self._places(frame)))
        LEAVE(1)

    def _ends(self, name: str) -> None:
        """Says that the code ends this process; a copy of it may end."""
        if os.getpid() == self._process:
            self._last(Failed("ended", f"calls os.{name}, which ends its process", *self._places(sys._getframe(2))))

    def _places(self, frame: FrameType | None) -> tuple[list[Frame], int]:
        return own_frames(traceback.walk_stack(frame), self._is_own, outwards=True)

    def _last(self, failure: Failed) -> None:
        self._flush()
        self.send(_answer_of(failure) | {"cpu": processor_time() - self._begun})

    def _flush(self) -> None:
        """Hands on what the code has printed."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # the code may have closed or replaced it
                stream.flush()


@dataclass(frozen=True)
class _Ends:
    """In the place of a function of `os` that ends the process."""

    name: str
    function: Callable[..., Any]
    say: Callable[[str], None]

    def __call__(self, *given: object, **named: object) -> Any:
        self.say(self.name)
        return self.function(*given, **named)


def _end_group() -> None:
    """Ends this process, and what it has started in its session: whoever asked is gone."""
    os.killpg(0, signal.SIGKILL)


def _no_debugger(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("breakpoint() has no terminal here: --trust runs your code in the process of the command, where it has one")


def function_of(module: Any, name: str) -> Callable[..., Any]:
    """A function of the user's module, or one of tpucc's that gets this module. Raises `Unfit` where there is none."""
    home, colon, own = name.partition(":")
    if colon:
        function: Callable[..., Any] = getattr(importlib.import_module(home), own)
        return function if module is None else lambda *arguments: function(module, *arguments)
    found: Callable[..., Any] | None = getattr(module, name, None)
    if callable(found):
        return found
    assert module is not None
    near = difflib.get_close_matches(name, [other for other, value in vars(module).items() if callable(value)], 1)
    mend = f"; did you mean {near[0]}?" if near else ""
    raise Unfit(f"{os.path.basename(str(module.__file__))} defines no function {name}{mend}")


def _answer_of(failure: Failed) -> dict[str, Any]:
    """A failure as values that travel."""
    return {
        "kind": failure.kind,
        "message": failure.message,
        "frames": [[frame.file[:CUT], frame.line, frame.function or frame.column] for frame in failure.frames],
        "left_out": failure.left_out,
        "found": [[each.code, each.message, each.help] for each in failure.found],
        "code": failure.code,
        "help": list(failure.help),
    }


def _seen(secrets: list[str]) -> dict[str, Any]:
    """What code could reach from here: which of the grader's paths, how many processes of others, whether as root, a network, and what
    outlives it."""
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
    return {"readable": readable, "others": others, "user": os.getuid(), "network": network, "filtered": refuse_calls()}
