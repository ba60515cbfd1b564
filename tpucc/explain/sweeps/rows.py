"""One row of a sweep's table: the numbers of a point as `stats.json` names them, or why it has none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, Literal
from zlib import crc32

import msgspec

from tpucc.diagnostics import Error, PluginError
from tpucc.explain.bottleneck import BOTTLENECKS
from tpucc.explain.sweeps.axes import number_or_text
from tpucc.explain.sweeps.plan import Plan
from tpucc.explain.sweeps.shared import Compiler
from tpucc.explain.timed import Timed
from tpucc.plain_errors import as_error

Row = Mapping[str, Any]
Stats = Mapping[str, Any]


def _at(*keys: str) -> Callable[[Stats], Any]:
    """Reads the number to which these keys lead."""
    return lambda found: reduce(getitem, keys, found)


RESULTS: Mapping[str, tuple[type, Callable[[Stats], Any]]] = {
    "end_to_end_seconds": (float, _at("end_to_end", "seconds")),
    "stream_seconds": (float, _at("end_to_end", "stream_seconds")),
    "end_to_end_bottleneck": (str, _at("end_to_end", "bottleneck")),
    "end_to_end_explanation": (str, _at("end_to_end", "explanation")),
    "stream_bottleneck": (str, _at("end_to_end", "stream_bottleneck")),
    "cycles": (int, _at("cycles")),
    "seconds": (float, _at("seconds")),
    "tops": (float, _at("tops")),
    "utilization": (float, _at("utilization")),
    "peak_tops": (float, _at("peak_tops")),
    "bottleneck": (str, _at("bottleneck")),
    "explanation": (str, _at("explanation")),
    "macs": (int, _at("macs")),
    "array_active": (float, _at("breakdown", "array_active")),
    "useful_macs": (float, _at("breakdown", "useful_macs")),
    "ub_peak_bytes": (int, _at("ub_peak_bytes")),
    "weight_bytes": (int, _at("weight_bytes")),
    "host_bytes": (int, lambda found: sum(found["host_bytes"].values())),
    "tile_fetches": (int, _at("tile_fetches")),
    "instructions": (int, _at("instructions")),
    "vector_macs": (int, _at("vector_macs")),
    "host_macs": (int, _at("host_macs")),
}
"""The columns with numbers: their types, and what of `stats.json` they are. The first five are of its `end_to_end`. `array_active`
and `useful_macs` are percentages of the cycles; `host_bytes` are those of both directions. `vector_macs` are a part of `macs`, `host_macs`
aren't."""
FAILURE = ("error", "reason")
"""The columns of a point that can't be compiled: the error's code and its message."""
_COUNT = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_KEPT = {int: _COUNT, float: Annotated[float, msgspec.Meta(ge=0)], str: str}
_RESULTS = {name: _KEPT[kind] for name, (kind, _) in RESULTS.items()}
_RESULTS |= {name: Literal[tuple(str(each) for each in BOTTLENECKS)] for name in RESULTS if name.endswith("bottleneck")}
_FAILURE = {"error": Annotated[str, msgspec.Meta(pattern=r"^E\d{4}$")], "reason": str}
_LINES = [
    msgspec.json.Decoder(msgspec.defstruct("Line", [("point", _COUNT), *fields.items()], forbid_unknown_fields=True))
    for fields in (_RESULTS, _FAILURE)
]


def measured(compiler: Compiler, plan: Plan, point: int) -> Row:
    """The results of a point. What can't be compiled has its error in place of numbers; a fault of tpucc is one, so that others go on."""
    try:
        program = compiler.program(Path(plan.model(point)), plan.options(point))
        found = Timed(program).stats
    except Exception as error:
        broken = as_error(error)
        fault = broken.diagnostics[0]
        return failed(fault.code, f"{fault.message}{_place(broken)}")
    return {name: of(found) for name, (_, of) in RESULTS.items()}


def _place(error: Error) -> str:
    """The file and the line of the user's code that an error is about; the source's own line has the command of the point."""
    span = error.diagnostics[0].span
    return f" ({error.source.name}:{span.line})" if isinstance(error, PluginError) and error.source and span else ""


def failed(code: str, reason: str) -> Row:
    return dict(zip(FAILURE, (code, reason), strict=True))


def line_of_row(point: int, row: Row) -> bytes:
    """The line that a sweep keeps of a point. It ends in its own checksum (CRC-32): a line that was changed isn't taken for a result."""
    line = json.dumps({"point": point, **row}, separators=(",", ":"), ensure_ascii=False).encode()
    return line[:-1] + _ending(line) + b"\n"


def _ending(line: bytes) -> bytes:
    return b',"crc":"%08x"}' % crc32(line)


def row_of_line(line: bytes) -> tuple[int, Row] | None:
    """The point and the row of a line that a sweep has kept; None for what no sweep writes: another checksum, other types, numbers out of
    their ranges."""
    line, _, ending = line.rstrip(b"\n").rpartition(b',"crc":')
    line += b"}"
    if b',"crc":' + ending != _ending(line):
        return None
    for decoder in _LINES:
        try:
            found = msgspec.structs.asdict(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        return found.pop("point"), found
    return None


def columns(plan: Plan) -> dict[str, type]:
    """The columns of a plan's table and their types: the model, the axes, the results, the failure, the command."""
    return {**settings_columns(plan), **{name: kind for name, (kind, _) in RESULTS.items()}, **dict.fromkeys((*FAILURE, "command"), str)}


def settings_columns(plan: Plan) -> dict[str, type]:
    """The columns that say which point it is. A param whose name another column has is `-D NAME`."""
    found: dict[str, type] = {"model": str}
    for axis in plan.axes:
        for name, kind in zip(axis.names, axis.types, strict=True):
            found[name if name not in found and name not in _TAKEN else f"-D {name}"] = kind
    return found


_TAKEN = {"model", "command", *RESULTS, *FAILURE}


def settings(plan: Plan, point: int) -> Iterator[tuple[str, Any]]:
    """The columns that say which point it is, with its values: numbers where all of the column's are, as the command has them."""
    yield "model", plan.model(point)
    kinds = settings_columns(plan)
    names = iter(list(kinds)[1:])
    for axis, _, text in plan.pairs(point):
        name = next(names)
        value = number_or_text(text)
        yield name, text if kinds[name] is str else value if axis.kind == "param" else kinds[name](value)


def whole(plan: Plan, point: int, found: Row) -> dict[str, Any]:
    """A row with all columns; None where there is nothing."""
    given = {**dict(settings(plan, point)), **found, "command": plan.command(point)}
    return {name: given.get(name) for name in columns(plan)}
