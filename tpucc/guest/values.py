"""What a function of the user's returns, on its way from the child process in which it runs (`serving.py`) to tpucc (`child.py`).

The child makes simple values of it (`packed`) and sends them as MessagePack; tpucc reads them (`decoded`, `unpacked`). What arrives is
None, a bool, a number, a string, a NumPy array, or a list or dict of these. Arrays travel as their bytes, a graph of tpucc's as its text,
the gradient that a rule gives as the text of the graph that computes it. Tuples, sets, bytes and all else that can be gone through arrive
as lists. Any other object becomes a `Shown`, which `require_plain` refuses by its class's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec
import numpy as np

from tpucc.ir.graph import Graph
from tpucc.ir.printer import print_graph
from tpucc.plugins.code import short
from tpucc.plugins.failures import Failed, Unfit

Plain = Any
"""What has arrived of a result, as said above: of no object but `Shown` and NumPy's arrays."""
MOST = 200_000
"""The most values in the lists and dicts of a result. An array counts as one, whatever is in it."""
DEEPEST = 20
"""The most lists and dicts inside each other, in a result."""
SENT = 4
"""The most values that are sent for each value of a result, on average: a `Shown` is sent as five, an array as seven and one for each of
its dimensions. So `decoded` refuses a list of 100,000 arrays, which `packed` lets pass."""
LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""MessagePack: first bytes of values that say how long they are, and in how many of the bytes that follow."""
FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
FIXED |= {0xC7: 1, 0xC8: 1, 0xC9: 1, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
"""MessagePack: how many bytes follow a first byte whatever they hold: a number; or the type of an extension, and its data where the first
byte alone says how long these are."""


@dataclass(frozen=True)
class Shown:
    """In the place of an object that can't travel: the start of its text, and the name of its class."""

    text: str
    kind: str

    def __repr__(self) -> str:
        return self.text


def packed(value: Any, most: int = MOST) -> Any:
    """A result as values that travel. Raises `Unfit` for more than `most` values, and for lists that are nested too deeply."""
    return _packed(value, count(1), most, 0)


def _packed(value: Any, counted: Iterator[int], most: int, depth: int) -> Any:
    if depth > DEEPEST:
        raise Unfit(f"returned lists that are nested more than {DEEPEST} deep")
    if next(counted) > most:
        raise Unfit(f"returned more than {most:,} values in lists; return an array")
    if value is None or isinstance(value, bool | int | float | str):
        return value if type(value) in (bool, int, float, str) or value is None else _base(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise Unfit(f"returned an array of {value.dtype}, which can't be handed back")
        return {"dtype": value.dtype.str, "shape": list(value.shape), "data": value.tobytes()}
    if isinstance(value, np.floating):
        return float(value)  # a long double has no number of Python's as its item
    if isinstance(value, np.generic) and isinstance(value := value.item(), bool | int):
        return value
    return _several(value, counted, most, depth + 1)


def _several(value: Any, counted: Iterator[int], most: int, depth: int) -> Any:
    """A result that is made of others, or that travels as something else: a graph, a gradient, an object."""
    if isinstance(value, dict):
        return {"dict": [[_key(key, counted, most, depth), _packed(entry, counted, most, depth)] for key, entry in value.items()]}
    if type(value) is Graph:
        return {"text": print_graph(value, with_data=True)}
    if type(value).__module__ == "tpucc.ops.gradient" and type(value).__name__ == "Value":
        return _packed(value.builder.graph(value), counted, most, depth)
    if not isinstance(value, type) and (isinstance(value, list | tuple) or hasattr(value, "__iter__")):
        return [_packed(entry, counted, most, depth) for entry in value]
    return {"shown": short(value), "kind": type(value).__name__}


def _key(value: Any, counted: Iterator[int], most: int, depth: int) -> Any:
    """A key of a dict. A tuple would arrive as a list, which can't be one."""
    found = _packed(value, counted, most, depth)
    if isinstance(found, list):
        raise Unfit(f"returned a dict with a {type(value).__name__} as a key, which can't be handed back: keys are numbers and strings")
    return found


def _base(value: Any) -> Any:
    """A number or string of a class derived from Python's, such as a member of an `IntEnum`, as a plain one."""
    return next(kind(value) for kind in (bool, int, float, str) if isinstance(value, kind))


def unpacked(value: Any, depth: int = 0) -> Plain:
    """The result of which `packed` made `value`. A child may have sent anything: any exception says that `packed` made no such value."""
    if depth > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    if isinstance(value, list):
        return [unpacked(entry, depth + 1) for entry in value]
    if not isinstance(value, dict):
        return value
    if "text" in value:
        return str(value["text"])
    if "shown" in value:
        return Shown(str(value["shown"]), str(value["kind"]))
    if "dict" in value:
        return {unpacked(key, depth + 1): unpacked(entry, depth + 1) for key, entry in value["dict"]}
    kind, shape = np.dtype(str(value["dtype"])), tuple(int(size) for size in value["shape"])
    if kind.kind not in "biuf":
        raise ValueError(f"an array of {kind}")
    return np.frombuffer(value["data"], kind).reshape(shape).copy()


def require_plain(value: Plain, inside: bool = False) -> Plain:
    """The value itself, if there is no `Shown` in it; else raises `Failed` with its class's name. `inside` says that the value is a part of
    another, for the message."""
    if isinstance(value, Shown):
        name = f"a {value.kind}"
        raise Failed("result", f"returned values with {name} in them, which can't be handed back" if inside else f"returned {name}")
    if isinstance(value, dict):
        require_plain([*value, *value.values()], inside=True)
    elif isinstance(value, list):
        for entry in value:
            require_plain(entry, inside=True)
    return value


def decoded(answer: bytes, most: int = MOST) -> dict[str, Any]:
    """The answer of a child to one request: a dict, such as `{"value": …}`. Raises `Failed` for one of more than `SENT` values for each of
    the `most` that a result may have. They are counted before any is made: an empty list is one byte here, and takes sixty in memory."""
    if not fits(answer, SENT * most):
        raise Failed("result", f"gave an answer of more than {SENT * most:,} values")
    try:
        found = msgspec.msgpack.decode(answer)
    except Exception:
        found = None
    if not isinstance(found, dict):
        raise Failed("result", "gave an answer that can't be read")
    return found


def fits(answer: bytes, most: int) -> bool:
    """Whether an answer has at most so many values, by what its lists and maps say of their lengths. It goes from the first byte of a value
    to that of the next: `passed` of the `said` values, the answer itself and all that lists and maps so far say they have."""
    at, said, passed = 0, 1, 0
    while at < len(answer) and passed < said <= most:
        head = answer[at]
        size = LENGTHS.get(head, 0)
        length = int.from_bytes(answer[at + 1 : at + 1 + size], "big")
        at, passed = at + 1 + size + FIXED.get(head, 0), passed + 1
        if 0x80 <= head <= 0x8F or head in (0xDE, 0xDF):  # a map
            said += 2 * (length if size else head & 0x0F)
        elif 0x90 <= head <= 0x9F or head in (0xDC, 0xDD):  # a list
            said += length if size else head & 0x0F
        else:  # text or bytes, or a value without a length
            at += length if size else head & 0x1F if 0xA0 <= head <= 0xBF else 0
    return said <= most
