"""How deep code that may recurse without end can nest its calls.

Python counts nested calls, and raises `RecursionError` at its limit. CPython 3.13 doesn't count calls in which a default or `*args` takes
part, once they have been specialised: they take all memory. Calls for which an event is watched aren't specialised.

In WebAssembly, the browser's stack is full before Python's usual limit is reached, and then Python is broken.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

SHALLOW = 150
"""Nested calls for which a browser's stack has room, whatever else each takes of it."""
SMALL_STACK = sys.platform == "emscripten"
_TOOL = 4
"""The number of a tool of `sys.monitoring` that no other is known by."""


def counted(code: CodeType) -> CodeType:
    """The code, in which Python counts every call."""
    if sys.version_info[:2] == (3, 13):
        if sys.monitoring.get_tool(_TOOL) is None:
            sys.monitoring.use_tool_id(_TOOL, "tpucc")
        for each in _nested(code):
            sys.monitoring.set_local_events(_TOOL, each, sys.monitoring.events.CALL)
    return code


@contextmanager
def shallow() -> Iterator[None]:
    """Lets the body nest `SHALLOW` calls, where the stack is small."""
    before = sys.getrecursionlimit()
    if not SMALL_STACK:
        yield
        return
    try:
        sys.setrecursionlimit(min(before, _depth(sys._getframe()) + SHALLOW))
        yield
    finally:
        sys.setrecursionlimit(before)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _depth(frame: FrameType | None) -> int:
    depth = 0
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    return depth
