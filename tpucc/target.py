"""The machine that a program is compiled for, as numbers.

A `Target` is read from a TOML file of `tpucc/targets/` or of the user's; overrides change some of its numbers. Nothing else in tpucc
hard-codes a size.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from functools import cache, lru_cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import msgspec

from tpucc.diagnostics import Diagnostic, ProgramError, UsageError, did_you_mean, listed, printable
from tpucc.files import read_file

DataType = Literal["int8", "bfloat16"]
DATA_BYTES: Mapping[str, int] = {"int8": 1, "bfloat16": 2}
SUMS: Mapping[str, str] = {"int8": "int32", "bfloat16": "float32"}
"""The data type in which products are summed, by the data type of their factors."""
PROGRAM_SIZES = ("accumulator_rows", "unified_buffer_rows", "weight_fifo_tiles")
PROGRAM_RATES = ("host_bandwidth", "host_elements_per_second")
STEP_NUMBERS = ("sublanes", "vector_alus", "hbm_latency_seconds", "ici_bandwidth", "ici_hop_seconds")
"""What the time of a step of training depends on beside; 0 of a machine of which it isn't known."""
ASSUMED = ("host_row_bytes", "host_latency_seconds", "host_step_seconds", "host_elements_per_second")
"""Numbers about the host that no source has: ours, in every target that programs are made for."""
NEEDED = (*PROGRAM_SIZES, "host_bandwidth")
"""What is said of every machine that runs programs."""

FASTEST = 1e18
"""Of rates: cycles, bytes or elements a second."""
SLOWEST = 10**6
"""Of seconds."""
MEMORY_ROWS = 2**22
"""The largest unified buffer and accumulator memory that tpucc simulates: 1 GiB at 256 bytes a row."""
_SIZE = (1, 2**40 - 1, "a positive integer below 2^40")
_ROWS = (2, MEMORY_ROWS, f"an integer from 2 to {MEMORY_ROWS:,}")
_RATE = (1, FASTEST, "a number from 1 to 10^18")
_SECONDS = (0, SLOWEST, f"a number of seconds from 0 to {SLOWEST:,}")
RANGES: Mapping[str, tuple[int, float, str]] = {
    "mxu": (1, 1024, "an integer from 1 to 1,024"),  # so that 8-bit products of one tile sum exactly in float32
    **dict.fromkeys(("cores", "matrix_units", "weight_memory_bytes", "weight_fifo_tiles"), _SIZE),
    **dict.fromkeys(("accumulator_rows", "unified_buffer_rows"), _ROWS),
    **dict.fromkeys(("clock_hz", "weight_bandwidth", *PROGRAM_RATES), _RATE),
    **dict.fromkeys(("host_latency_seconds", "host_step_seconds"), _SECONDS),
    "host_row_bytes": (0, 4096, "an integer from 0 to 4,096"),
    **dict.fromkeys(("sublanes", "vector_alus"), (0, 1024, "an integer from 0 to 1,024")),
    "ici_bandwidth": (0, FASTEST, "0, or a number from 1 to 10^18"),
    **dict.fromkeys(("hbm_latency_seconds", "ici_hop_seconds"), _SECONDS),
}
"""The least and the largest value of each number, and the range in words."""
MOST_CYCLES = 2**40
"""The longest that one instruction may take. A million such instructions are counted exactly in 64 bits."""
_TOML = re.compile(r"(.*) \(at (?:(line .*)|end of document)\)")
"""What is wrong with a TOML file, and where."""
MAX_TEXT = 1000
"""Characters of a name or a description."""
MAX_TARGET = 2**14
"""Bytes of a target's file."""


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One machine. Sizes are in rows of `mxu` bytes, rates in bytes or cycles a second.

    The numbers of TPU v1 are those of Jouppi et al., "In-Datacenter Performance Analysis of a Tensor Processing Unit", ISCA 2017.

    A machine of another data type than int8 has no 8-bit programs. What it doesn't say (accumulators, buffers, FIFO, host link) is 0.
    """

    name: str
    description: str
    mxu: int
    """Rows and columns of the matrix unit; also the bytes of a unified-buffer row."""
    clock_hz: float
    weight_memory_bytes: int
    weight_bandwidth: float
    """Bytes a second from weight memory to the FIFO, of the whole chip."""
    data_type: DataType = "int8"
    """The data type that the matrix unit multiplies."""
    cores: int = 1
    """Cores of the chip. A program runs on one."""
    matrix_units: int = 1
    """Matrix units of a core."""
    accumulator_rows: int = 0
    """Rows of `mxu` int32 accumulators."""
    unified_buffer_rows: int = 0
    weight_fifo_tiles: int = 0
    host_bandwidth: float = 0.0
    """Bytes a second between host memory and the unified buffer, both directions sharing it."""
    host_latency_seconds: float = 0.0
    """Seconds that each transfer takes besides its bytes: the round trip of its request."""
    host_row_bytes: int = 0
    """On the host link the values of a tensor's row are padded to a multiple of so many bytes: 1 packs them, 0 is the width of the matrix
    unit. Our assumption in every target; the paper has no number."""
    host_step_seconds: float = 10e-6
    """Seconds from an interrupt to the host's first result. Our assumption: a driver's round trip; the paper has no number."""
    host_elements_per_second: float = 1e9
    """Elements that the host computes in a second. Our assumption: one core, an element a nanosecond."""
    sublanes: int = 0
    """Rows of `mxu` lanes that the vector unit works on in a cycle."""
    vector_alus: int = 0
    """Operations of the vector unit on each lane and cycle."""
    hbm_latency_seconds: float = 0.0
    """Seconds from a request to the first bytes of memory, which each group of operators of a step waits for."""
    ici_bandwidth: float = 0.0
    """Bytes a second of a link to another chip, in each direction."""
    ici_hop_seconds: float = 0.0
    """Seconds of a hop over a link besides its bytes."""

    def __post_init__(self) -> None:
        described = self.data_type != "int8"
        self._require_ranges(described)
        for what, fields, cycles in self._longest(described):
            if cycles > MOST_CYCLES:
                raise ValueError(f"{what} would take {cycles:.1e} cycles, and at most {MOST_CYCLES:.1e} are counted; see {listed(fields)}")

    def _require_ranges(self, described: bool) -> None:
        for field, (low, high, _) in RANGES.items():
            least = 0 if described and field in PROGRAM_SIZES + PROGRAM_RATES else low
            value = getattr(self, field)
            if not least <= value <= high or (field == "ici_bandwidth" and 0 < value < 1):
                raise _wrong(field, value)

    def _longest(self, described: bool) -> Iterator[tuple[str, list[str], float]]:
        """The durations that may be too long on this machine: in words, the numbers that they depend on, and in cycles."""
        clock = self.clock_hz
        yield "a tile of weights", ["weight_bandwidth", "mxu", "clock_hz"], self.tile_bytes * clock / self.weight_bandwidth
        if not described:
            size = self.unified_buffer_rows * max(self.mxu, self.host_row_bytes)
            fields = ["host_bandwidth", "unified_buffer_rows", "mxu", "clock_hz"]
            yield "filling the unified buffer", fields, size * clock / self.host_bandwidth
            yield "a transfer", ["host_latency_seconds", "clock_hz"], self.host_latency_seconds * clock
            yield "a host step", ["host_step_seconds", "clock_hz"], self.host_step_seconds * clock
            million = 10**6 * clock / self.host_elements_per_second
            yield "a host step of a million elements", ["host_elements_per_second", "clock_hz"], million

    @property
    def tile_bytes(self) -> int:
        return self.mxu * self.mxu * DATA_BYTES[self.data_type]

    @property
    def tile_fetch_cycles(self) -> int:
        """Cycles that one weight tile takes from weight memory: 1,349 on TPU v1 (64 KiB at 34 GB/s and 700 MHz)."""
        return self.transfer_cycles(self.tile_bytes, self.weight_bandwidth)

    @property
    def tile_shift_cycles(self) -> int:
        """Cycles to shift a tile from the FIFO into the unit's shadow: one row of weights a cycle."""
        return self.mxu

    @property
    def pipeline_cycles(self) -> int:
        """Cycles from a row's entry to its sum's arrival in the accumulators: fill and drain of the systolic array."""
        return 2 * self.mxu

    @property
    def peak_ops(self) -> float:
        """Operations a second of one core at full use: a multiply and an add for each cell and cycle."""
        return 2.0 * self.matrix_units * self.mxu * self.mxu * self.clock_hz

    @property
    def chip_peak_ops(self) -> float:
        """Operations a second of all cores: cores × matrix units × mxu² × 2 × clock."""
        return self.cores * self.peak_ops

    @property
    def peak_unit(self) -> str:
        """The unit for 10¹² operations a second."""
        return "TOPS" if self.data_type == "int8" else "TFLOPS"

    @property
    def ridge_macs_per_byte(self) -> float:
        """Multiply-accumulates a byte of weights at which the roofline bends: 1,349 on TPU v1."""
        return self.chip_peak_ops / 2 / self.weight_bandwidth

    @property
    def obstacle(self) -> str:
        """Why no 8-bit program can be made for this machine, in words; nothing when one can."""
        if self.data_type != "int8":
            return f"multiplies {self.data_type} and sums in {SUMS[self.data_type]}; this compiler makes 8-bit programs"
        if self.matrix_units != 1:
            return f"has {self.matrix_units} matrix units a core; this compiler makes programs for one"
        return ""

    def link_widths(self, columns: int) -> tuple[int, ...]:
        """For each column block of a tensor the bytes that one of its rows takes on the host link. The last block carries the padding."""
        grain, before = self.host_row_bytes or self.mxu, (-(-columns // self.mxu) - 1) * self.mxu
        return (*(self.mxu,) * (before // self.mxu), -(-columns // grain) * grain - before)

    def host_cycles(self, rows: int) -> int:
        """Cycles of a transfer of `rows` whole rows of the unified buffer from or to the host."""
        return self.link_cycles(rows * self.mxu)

    def link_cycles(self, size: int) -> int:
        """Cycles of a transfer of `size` bytes between the host and the unified buffer: its latency, and its bytes at the link's rate."""
        return round(self.host_latency_seconds * self.clock_hz) + self.transfer_cycles(size, self.host_bandwidth)

    @property
    def half_rate_rows(self) -> int:
        """Rows of the transfer that takes as long for its bytes as for its latency: it has half the link's rate."""
        return math.ceil(self.host_latency_seconds * self.host_bandwidth / self.mxu)

    def host_step_cycles(self, elements: int) -> int:
        """Cycles of a host step that computes `elements` elements."""
        return max(1, round(self._host_seconds(elements) * self.clock_hz))

    def host_part_seconds(self, elements: int) -> float:
        """Seconds of the host's work before the device starts, or after it has finished: as a step's; none where nothing is to do."""
        return self._host_seconds(elements) if elements else 0.0

    def _host_seconds(self, elements: int) -> float:
        return self.host_step_seconds + elements / self.host_elements_per_second

    def transfer_cycles(self, size: int, bandwidth: float) -> int:
        return max(1, round(size * self.clock_hz / bandwidth))


def machine_name(target: str, cores: int) -> str:
    """The machine of a program, in words: `tpu_v1`, `8 cores of tpu_v1`."""
    return target if cores == 1 else f"{cores:,} cores of {target}"


def target_names() -> list[str]:
    """The names of the targets that come with tpucc."""
    return sorted(f.name.removesuffix(".toml") for f in _folder().iterdir() if f.name.endswith(".toml"))


def load_target(name: str, overrides: Mapping[str, object] | None = None) -> Target:
    """The built-in target `name`, or the one in the file `name` when that ends in `.toml`, with `overrides` (see `with_overrides`).

    Raises `UsageError` when there is none or an override is wrong, and `ProgramError` when the file is malformed.
    """
    return with_overrides(_loaded(name), overrides or {})


def with_overrides(target: Target, overrides: Mapping[str, object]) -> Target:
    """`target` with other numbers: `{"weight_bandwidth": 136e9}`. Values are numbers, or texts of numbers.

    Its name says what was changed: `tpu_v1 (weight_bandwidth=136e9)`. Raises `UsageError` E0531 for an unknown name, or for a value that is
    impossible.
    """
    values = {field: number_of(field, value) for field, value in overrides.items()}
    changed = {field: values[field] for field in number_fields() if field in values and values[field] != getattr(target, field)}
    if not changed:
        return target
    texts = [f"{field}={number_text(value)}" for field, value in changed.items()]
    try:
        return msgspec.structs.replace(target, name=f"{target.name} ({', '.join(texts)})", **changed)
    except (ValueError, OverflowError) as error:
        raise UsageError(Diagnostic("E0531", f"{target.name} can't have {listed(texts)}: {error}")) from None


def require_compilable(target: Target) -> None:
    """Raises `UsageError` E0530 when no program can be made for this machine."""
    if target.obstacle:
        step = ("tpucc train, and compile --train, are for a step of training on it",) if target.data_type == "bfloat16" else ()
        mend = ("compile for another one: --target tpu_v1", *step)
        raise UsageError(Diagnostic("E0530", f"{target.name} {target.obstacle}", help=mend))


def number_fields() -> Mapping[str, type[int] | type[float]]:
    """The fields of a target that are numbers, and their types."""
    return {f.name: f.type for f in msgspec.structs.fields(Target) if f.type in (int, float)}


@lru_cache(maxsize=64)
def parse_target(text: str, name: str) -> Target:
    """A target from TOML text; `name` stands in messages. Raises `ProgramError`. A process reads the same text once."""
    try:
        fields = tomllib.loads(text)
    except (ValueError, RecursionError, OverflowError) as error:
        raise _no_target(name, _why_no_toml(error)) from None
    for key in fields:
        if key not in _fields():
            near = did_you_mean(key, _fields())
            raise _no_target(name, f"a target has no field {printable(key)}", near or f"it has {', '.join(_fields())}")
    try:
        return target_of(fields)
    except ValueError as error:
        raise _no_target(name, str(error)) from None


def target_of(fields: Mapping[str, object]) -> Target:
    """A target of the values of its fields. Raises `ValueError`, in words about the fields, for what is missing or no machine has."""
    needed = () if fields.get("data_type", "int8") == "bfloat16" else NEEDED
    missing = [f.name for f in msgspec.structs.fields(Target) if f.name not in fields and (f.required or f.name in needed)]
    if missing:
        raise ValueError(f"it doesn't say {listed(missing)}")
    return Target(**{key: _typed(key, value) for key, value in fields.items()})


def _no_target(name: str, why: str, help: str = "") -> ProgramError:
    return ProgramError(Diagnostic("E0502", f"{name} is not a target: {why}", help=(help,)))


def _why_no_toml(error: Exception) -> str:
    if found := _TOML.fullmatch(str(error)):
        what = "the field is there already" if found[1] == "Cannot overwrite a value" else f"{found[1][:1].lower()}{found[1][1:]}"
        return f"it is no TOML at {found[2] or 'its end'}: {what}"
    return "it is nested too deep" if isinstance(error, RecursionError) else "a number in it has too many digits"


@cache
def _fields() -> Mapping[str, Any]:
    """The fields of a target, and their types."""
    return {field.name: field.type for field in msgspec.structs.fields(Target)}


def _typed(field: str, value: object) -> Any:
    """A value of a target's file in the field's type. Raises `ValueError`."""
    kind = _fields()[field]
    if kind is float and type(value) is int and abs(value) < 10**30:
        return float(value)
    if kind in (int, float, str) and type(value) is kind and (kind is not str or len(str(value)) <= MAX_TEXT):
        return value
    if field == "data_type" and value in list(DATA_BYTES):
        return value
    raise _wrong(field, value)


def _wrong(field: str, value: object) -> ValueError:
    """The error of a field's value, which says the field's range and the value."""
    return ValueError(f"{field} must be {_meant(field)}, and is {_found(value)}")


def _meant(field: str) -> str:
    """What a field of a target is, in words."""
    if field in RANGES:
        return RANGES[field][2]
    return listed([*DATA_BYTES], "or") if field == "data_type" else f"a text of at most {MAX_TEXT:,} characters"


def _found(value: object) -> str:
    """A value of a target's file in words that tell `128` from `"128"`, as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'the text "{_cut(value)}"'
        case list():
            return "a list"
        case dict():
            return "a table"
        case date() | time():
            return f"the date or time {value}"
        case _:
            return _cut(value)


def _cut(value: object) -> str:
    """A value as a message shows it."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    text = printable(str(value))
    return text if len(text) <= 40 else f"{text[:39]}…"


def _loaded(name: str) -> Target:
    if name.endswith(".toml"):
        return parse_target(_read(Path(name)), name)
    if name not in target_names():
        near = _near(name)
        choices = f"the targets are {', '.join(target_names())}; a file ends in .toml"
        said = f"no target is named {name}" if name else "the name of the target is empty"
        raise UsageError(Diagnostic("E0501", said, help=(near, choices) if near else (choices,)))
    return parse_target((_folder() / f"{name}.toml").read_text("utf-8"), f"{name}.toml")


def _near(name: str) -> str:
    """`did you mean tpu_edge or tpu_v1?` of the beginning of several: those that programs can be made for, if there are any."""
    begun = [known for known in target_names() if name and known.startswith(name.lower())]
    usable = [known for known in begun if not load_target(known).obstacle]
    return f"did you mean {listed(usable or begun, 'or')}?" if begun else did_you_mean(name, target_names())


def number_of(field: str, value: object) -> int | float:
    """The value of an override in the field's type: `4096`, `4e3` where an integer is meant, `136e9`. Raises `UsageError` E0531."""
    known = number_fields()
    if field not in known:
        near = did_you_mean(field, known)
        raise UsageError(Diagnostic("E0531", f"a target has no number {field}", help=(near or f"it has {', '.join(known)}",)))
    kind = known[field]
    try:
        number = _parsed(value)
        converted = kind(number)
    except (ValueError, OverflowError):
        raise _wrong_value(field, value) from None
    if converted != number:
        raise _wrong_value(field, value)
    return converted


def _parsed(value: object) -> int | float:
    """A number, or the number that a text says. Raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, str | Real):
        raise ValueError
    if not isinstance(value, str):
        return int(value) if isinstance(value, Integral) else float(value)
    return int(value) if value.strip().isdecimal() else float(value)


def _wrong_value(field: str, value: object) -> UsageError:
    return UsageError(Diagnostic("E0531", f"{field} of a target is {_meant(field)}, not {_cut(value) or 'an empty text'}"))


def number_text(value: int | float) -> str:
    """A number as people write it, with an exponent that three divides: 512, 136e9."""
    return Decimal(repr(value)).normalize().to_eng_string().replace("E+", "e").replace("E", "e") if isinstance(value, float) else str(value)


def _folder() -> Path:
    return Path(__file__).with_name("targets")


def _read(path: Path) -> str:
    data = read_file(path, "E0503", "the target ", MAX_TARGET)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(Diagnostic("E0503", f"can't read the target {path}: byte {error.start:,} is not UTF-8")) from None
