"""Programs of the user's own as stages, in any language: one run for each call, which reads one JSON object and writes another.

The child runs them as it runs Python: what a program may use is what the child may. The forms follow from the values that a stage in
Python gets and gives, by `written`, so that no stage has a form of its own.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from inspect import signature
from threading import Thread
from types import ModuleType
from typing import IO, Any

import msgspec
import numpy as np

from tpucc.back_end import STAGES
from tpucc.diagnostics import listed
from tpucc.plugins.code import FileFunction, short, short_text
from tpucc.plugins.failures import Failed, Unfit
from tpucc.schedule.allocate import TooLarge
from tpucc.stages.stages import BUILT_IN

VERSION = 1
"""Of the form of what is read and written. Fields may be added to a version, never removed or given another meaning."""
MOST = 2**26
"""Bytes that a program may write to standard output."""
MOST_NAMES = 8
"""Fields of a wrong answer that its message names."""
FORM = f'a program writes one object, such as {{"version": {VERSION}, "result": [0, 12]}}; docs/stages.md has the results of all stages'


def program_module(path: str, name: str) -> ModuleType:
    """A program as the module that a Python file with every stage makes: which of them is called, the program is told."""
    module = ModuleType(name)
    module.__file__ = path
    vars(module).update({stage: FileFunction(partial(_asked, path, stage), path, 0) for stage in STAGES})
    return module


def _asked(path: str, stage: str, *arguments: Any) -> Any:
    """What a program answers for a stage. Raises `TooLarge` where the program says so, `Failed` and `Unfit`."""
    return answer_of(_run(path, question(stage, arguments)))


def question(stage: str, arguments: Sequence[Any]) -> bytes:
    """What a program reads: the version, the stage, and the arguments of the stage's function by their names."""
    names = signature(getattr(BUILT_IN, stage)).parameters
    values = {name: written(value) for name, value in zip(names, arguments, strict=True)}
    return msgspec.json.encode({"version": VERSION, "stage": stage, **values}) + b"\n"


def written(value: Any) -> Any:
    """An argument of a stage in the values of JSON: fields by their names, arrays and sequences as lists, an engine as its name. Functions
    are left out."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if hasattr(value, "_asdict"):
        return {name: written(part) for name, part in value._asdict().items()}
    if is_dataclass(value) and not hasattr(value, "__getitem__"):
        parts = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: written(part) for name, part in parts if not callable(part)}
    if isinstance(value, list | tuple) or is_dataclass(value):
        return [written(part) for part in value]  # type: ignore[union-attr]  # a dataclass that is a sequence of instructions
    return value


def _run(path: str, given: bytes) -> bytes:
    """What a program writes that reads `given`. Raises `Failed` where it doesn't end well, `Unfit` where it can't be started or writes too
    much."""
    try:
        process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        help = "is it made for this machine, and does the first line of a script name what runs it, as #!/usr/bin/env python3?"
        raise Unfit(f"can't be started: {error.strerror}", help, code="E0521") from None
    assert process.stdin is not None
    assert process.stdout is not None
    Thread(target=_write, args=(process.stdin, given), daemon=True).start()
    try:
        with process.stdout:
            found = process.stdout.read(MOST + 1)
        if len(found) > MOST:
            raise Unfit(f"wrote more than {MOST:,} bytes to standard output")
        status = process.wait()
    finally:
        process.kill()
        process.wait()
    if status == -signal.SIGXCPU:
        raise Failed("time", "processor")
    if status < 0:
        raise Failed("ended", f"was ended by signal {-status} ({signal.strsignal(-status)})")
    if status:
        raise Failed("ended", f"ended with exit status {status}; 0 says that there is an answer")
    return found


def _write(stream: IO[bytes], given: bytes) -> None:
    """Writes what a program reads. One that has read enough may close its end."""
    with suppress(OSError), stream:
        stream.write(given)


def answer_of(text: bytes) -> Any:
    """The result in what a program has written. Raises `TooLarge` where it says that, and `Unfit` for what has another form."""
    if not text.strip():
        raise Unfit("wrote nothing to standard output", FORM)
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Unfit(f"wrote {short_text(text.decode('utf-8', 'replace').strip())}, which can't be read: {error}", FORM) from None
    if not isinstance(found, dict):
        raise Unfit(f"wrote {short(found)}, expected an object", FORM)
    version = found.pop("version", VERSION)
    if version != VERSION:
        raise Unfit(f"wrote an answer of version {short(version)}, expected {VERSION}", FORM)
    if list(found) == ["TooLarge"] and isinstance(found["TooLarge"], str):
        raise TooLarge(found["TooLarge"])
    if list(found) != ["result"]:
        names = listed([*map(short_text, list(found)[:MOST_NAMES]), *(["others"] if len(found) > MOST_NAMES else [])]) or "nothing in it"
        raise Unfit(f"wrote an object with {names}, expected result, or TooLarge with a text", FORM)
    return found["result"]
