"""A replaced stage as the pipeline calls it: the user's function, and its result checked.

Each `safe_…` has the signature of its stage. Inputs can be read, not written; results are checked for type, length and range here. The
verifiers of tile and machine programs check their meaning, as for the built-in stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from enum import IntEnum
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from tpucc.diagnostics import Diagnostic, Error
from tpucc.lowering.plan import Lowerer
from tpucc.lowering.tileprogram import TileProgram
from tpucc.machine.machine import Machine
from tpucc.numerics import AnyArray, Int64, read_only
from tpucc.plugins.code import short, short_text, user_code
from tpucc.plugins.failures import Unfit
from tpucc.schedule.allocate import Allocate, Lives, TooLarge
from tpucc.schedule.listing import Listing
from tpucc.schedule.synchronise import Synchronise, Wait
from tpucc.stages.product_lines import lowerer_of, read_product
from tpucc.stages.products import LowerProduct, ProductLayer, WrittenProduct

T = TypeVar("T", TileProgram, Listing)

MOST_LINES = 1_000_000
"""Lines that a lowering may return for one layer."""


def safe_lowerer(stage: str, function: LowerProduct) -> Lowerer:
    """A lowering's lines, read. Those that can't be are named with the layer."""
    code = user_code(f"the stage {stage}", function)

    def lower(layer: ProductLayer) -> WrittenProduct:
        given = replace(layer)
        lines = code.call(lambda: _lines(function(given)))
        try:
            return read_product(layer, lines)
        except Error as error:
            found = tuple(_of_line(diagnostic, lines) for diagnostic in error.diagnostics)
            raise code.error("E0523", f"wrote for layer {layer.name}:", more=found) from None

    return lowerer_of(lower)


def safe_allocate(function: Allocate, names: Sequence[str]) -> Allocate:
    """Rows inside the buffer, for every buffer; `names` are those of all buffers, for messages."""
    code = user_code("the stage allocate", function)

    def allocate(lives: Lives, rows: int) -> Int64:
        used = np.flatnonzero(lives.last >= 0)
        columns = [column[used] for column in (lives.first, lives.last, lives.rows)]
        given = Lives(*(read_only(column.copy()) for column in columns))
        starts = code.call(_starts, function, given, rows, len(used))
        if isinstance(starts, TooLarge):
            raise starts
        outside = np.flatnonzero((starts < 0) | (starts + columns[2] > rows))
        if len(outside):
            index = int(outside[0])
            place = f"rows {starts[index]:,} to {starts[index] + columns[2][index] - 1:,}"
            raise code.error(
                "E0523", f"put buffer {index} ({names[used[index]]}) on {place}; the unified buffer has rows 0 to {rows - 1:,}"
            )
        if (both := _overlapping(starts, *columns)) is not None:
            places = [_place_of(b, names[used[b]], starts, Lives(*columns)) for b in both]
            raise code.error("E0523", f"put two buffers on the same rows: {places[0]}; {places[1]}")
        placed = np.zeros(len(lives.rows), np.int64)
        placed[used] = starts
        return placed

    return allocate


def safe_order(function: Callable[[TileProgram], Sequence[int]]) -> Callable[[TileProgram], Int64]:
    """The numbers of the instructions in their new order, each once."""
    code = user_code("the stage order", function)

    def ordered(tiles: TileProgram) -> Int64:
        count = len(tiles)
        given = _with_own_arrays(tiles)
        order = code.call(lambda: _integers(function(given), count, "the number of each instruction, once"))
        if problem := problem_of_order(order):
            raise code.error("E0523", problem)
        return order

    return ordered


def problem_of_order(order: AnyArray) -> str:
    """What is wrong with integers that should be the numbers of instructions, each once; or nothing."""
    count, outside = len(order), np.flatnonzero((order < 0) | (order >= len(order)))
    if len(outside):
        return f"returned instruction {order[outside[0]]:,}; there are 0 to {count - 1:,}"
    missing = np.flatnonzero(np.bincount(order.astype(np.int64), minlength=count) == 0)
    return f"left out instruction {missing[0]:,} and returned another twice; expected each once" if len(missing) else ""


def safe_synchronise(function: Synchronise) -> Synchronise:
    """Waits between instructions that are there, for engines that touch rows."""
    code = user_code("the stage synchronise", function)

    def synchronise(listing: Listing) -> Sequence[Wait]:
        given = _with_own_arrays(listing)
        most = len(listing) * len(listing.machine.row_units) ** 2
        waits = code.call(lambda: [read_wait(wait, listing) for wait in islice(_several(function(given), "waits"), most + 1)])
        if len(waits) > most:
            raise code.error("E0523", f"returned more than {most:,} waits, which is one for each two engines before each instruction")
        return sorted(waits, key=lambda wait: wait.before)

    return synchronise


def _with_own_arrays(given: T) -> T:
    """A value with copies of its arrays: the user could make an array writable that is read only."""
    values = {field.name: getattr(given, field.name) for field in fields(given)}
    own: dict[str, Any] = {name: read_only(value.copy()) for name, value in values.items() if isinstance(value, np.ndarray)}
    return replace(given, **own)


def _of_line(found: Diagnostic, lines: list[str]) -> Diagnostic:
    """A fault of one of a lowering's lines, with the text of the line, because the line isn't in a file."""
    number = found.span.line if found.span else 0
    text = f"line {number}, `{short_text(lines[number - 1].strip())}`: " if 0 < number <= len(lines) else ""
    return Diagnostic(found.code, f"{text}{found.message}", (), found.help)


def _place_of(buffer: int, name: str, starts: Int64, lives: Lives) -> str:
    rows = f"rows {starts[buffer]:,} to {starts[buffer] + lives.rows[buffer] - 1:,}"
    return f"buffer {buffer} ({name}) on {rows}, alive from instruction {lives.first[buffer]:,} to {lives.last[buffer]:,}"


def _overlapping(starts: Int64, first: Int64, last: Int64, rows: Int64) -> tuple[int, int] | None:
    """Two buffers that are alive at one time and share a row; None when there are none."""
    order = np.lexsort((starts, first))
    for place, buffer in enumerate(order.tolist()):
        later = order[place + 1 :]
        later = later[: np.searchsorted(first[later], last[buffer], side="right")]
        shared = later[(starts[later] < starts[buffer] + rows[buffer]) & (starts[buffer] < starts[later] + rows[later])]
        if len(shared):
            return buffer, int(shared[0])
    return None


def _starts(function: Allocate, lives: Lives, rows: int, count: int) -> Int64 | TooLarge:
    """The rows, or the answer that they don't fit, in plain words."""
    try:
        return _integers(function(lives, rows), count, "the first row of each buffer")
    except TooLarge as answer:
        return TooLarge(str.__str__(str(answer)))


def _lines(found: object) -> list[str]:
    """Lines from a text or from several strings."""
    if isinstance(found, str):
        return str.splitlines(found)
    lines = list(islice(_several(found, "lines"), MOST_LINES + 1))
    if len(lines) > MOST_LINES:
        raise Unfit(f"returned more than {MOST_LINES:,} lines for one layer; does a generator never end?")
    for line in lines:
        if not isinstance(line, str):
            raise Unfit(f"returned {short(line)} among its lines, expected strings")
    return [part for line in lines for part in str.splitlines(line)]


def read_wait(wait: Any, listing: Listing) -> Wait:
    """A wait of a listing. Raises `Unfit`."""
    count, machine = len(listing), listing.machine
    form = "(before instruction, engine that waits, engines waited for)"
    if not isinstance(wait, tuple | list) or len(wait) != 3:
        raise Unfit(f"returned {short(wait)} as a wait, expected {form}")
    before, engine, others = wait
    if not isinstance(before, int | np.integer) or isinstance(before, bool) or not 0 <= before <= count:
        raise Unfit(f"returned a wait before instruction {short(before)}; there are 0 to {count - 1:,}")
    single = isinstance(others, str | int)
    engines = tuple(dict.fromkeys(_engine(other, machine) for other in ((others,) if single else _several(others, "engines"))))
    waits = _engine(engine, machine)
    if not engines or waits in engines:
        raise Unfit(f"returned {short(wait)}, a wait of an engine for {'itself' if engines else 'none'}")
    return Wait(int(before), waits, engines)


def _engine(value: object, machine: Machine) -> IntEnum:
    """An engine, or its name."""
    names = {engine.name.lower(): engine for engine in machine.row_units}
    found = names.get(value.lower()) if isinstance(value, str) else next((engine for engine in names.values() if engine == value), None)
    if found is None:
        raise Unfit(f"returned {short(value)} as an engine, expected one of {', '.join(names)}")
    return found


def _several(found: object, what: str) -> Iterable[Any]:
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise Unfit(f"returned {short(found)}, expected a list of {what}")
    return found


def _integers(found: object, count: int, what: str) -> Int64:
    """A result that is one integer for each of `count` things."""
    try:
        array = np.asarray(
            found if isinstance(found, np.ndarray | str) or not isinstance(found, Iterable) else list(islice(found, count + 1))
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise Unfit(f"returned {short(found)}, which isn't a list of integers: {error}") from None
    if array.shape != (count,) or (array.dtype.kind not in "iu" and count):
        shown = f"{array.dtype} of shape {list(array.shape)}" if array.ndim else short(found)
        raise Unfit(f"returned {shown}, expected {count:,} integers: {what}")
    if count and int(array.max()) >= 2**62:
        raise Unfit(f"returned {array.max()}, expected {what}")
    return array.astype(np.int64)
