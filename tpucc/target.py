"""The machine that a program is compiled for, as numbers.

A `Target` is read from a TOML file of `tpucc/targets/` or of the user's. Nothing else in tpucc hard-codes a size.
"""

from __future__ import annotations

import math
import tomllib
from importlib import resources
from pathlib import Path

import msgspec

from tpucc.diagnostics import Diagnostic, ProgramError, UsageError, did_you_mean


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One machine. Sizes are in rows of `mxu` bytes, rates in bytes or cycles a second.

    The numbers of TPU v1 are those of Jouppi et al., "In-Datacenter Performance Analysis of a Tensor Processing Unit", ISCA 2017.
    """

    name: str
    description: str
    mxu: int
    """Rows and columns of the matrix unit; also the bytes of a unified-buffer row."""
    clock_hz: float
    accumulator_rows: int
    """Rows of `mxu` int32 accumulators."""
    unified_buffer_rows: int
    weight_fifo_tiles: int
    weight_memory_bytes: int
    weight_bandwidth: float
    """Bytes a second from weight memory to the FIFO."""
    host_bandwidth: float
    """Bytes a second between host memory and the unified buffer, both directions sharing it."""
    host_step_seconds: float = 10e-6
    """Seconds from an interrupt to the host's first result. Our assumption: a driver's round trip; the paper has no number."""
    host_elements_per_second: float = 1e9
    """Elements that the host computes in a second at an interrupt. Our assumption: one core, an element a nanosecond."""

    def __post_init__(self) -> None:
        for field in ("mxu", "accumulator_rows", "unified_buffer_rows", "weight_fifo_tiles", "weight_memory_bytes"):
            if not 0 < getattr(self, field) < 2**40:
                raise ValueError(f"{field} must be a positive integer below 2^40")
        for field in ("clock_hz", "weight_bandwidth", "host_bandwidth", "host_elements_per_second"):
            if not (math.isfinite(getattr(self, field)) and getattr(self, field) > 0):
                raise ValueError(f"{field} must be a positive finite number")
        if not 0 <= self.host_step_seconds < math.inf:
            raise ValueError("host_step_seconds must be a finite number that is not negative")
        if self.mxu > 1024:
            raise ValueError("mxu must be at most 1024, so that 8-bit products of one tile sum exactly in float32")
        if self.accumulator_rows < 2 or self.unified_buffer_rows < 2:
            raise ValueError("accumulator_rows and unified_buffer_rows must be at least 2")
        if max(self.unified_buffer_rows, self.accumulator_rows) >= 2**31:
            raise ValueError("unified_buffer_rows and accumulator_rows must be below 2^31")

    @property
    def tile_bytes(self) -> int:
        return self.mxu * self.mxu

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
        """Operations a second at full use: a multiply and an add for each cell and cycle."""
        return 2.0 * self.mxu * self.mxu * self.clock_hz

    def host_cycles(self, rows: int) -> int:
        """Cycles of a transfer of `rows` rows between the host and the unified buffer."""
        return self.transfer_cycles(rows * self.mxu, self.host_bandwidth)

    def host_step_cycles(self, elements: int) -> int:
        """Cycles of a host step that computes `elements` elements."""
        return max(1, round((self.host_step_seconds + elements / self.host_elements_per_second) * self.clock_hz))

    def transfer_cycles(self, size: int, bandwidth: float) -> int:
        return max(1, round(size * self.clock_hz / bandwidth))


def machine_name(target: str, cores: int) -> str:
    """What a program runs on, in words: `tpu_v1`, `8 cores of tpu_v1`."""
    return target if cores == 1 else f"{cores:,} cores of {target}"


def target_names() -> list[str]:
    """The names of the targets that come with tpucc."""
    return sorted(f.name.removesuffix(".toml") for f in _folder().iterdir() if f.name.endswith(".toml"))


def load_target(name: str) -> Target:
    """The built-in target `name`, or the one in the file `name` when that ends in `.toml`.

    Raises `UsageError` when there is none and `ProgramError` when the file is malformed.
    """
    if name.endswith(".toml"):
        return parse_target(_read(Path(name)), name)
    if name not in target_names():
        near = did_you_mean(name, target_names())
        choices = f"the targets are {', '.join(target_names())}; a file ends in .toml"
        raise UsageError(Diagnostic("E0501", f"no target is named {name}", help=(near, choices) if near else (choices,)))
    return parse_target((_folder() / f"{name}.toml").read_text("utf-8"), f"{name}.toml")


def parse_target(text: str, name: str) -> Target:
    """A target from TOML text; `name` stands in messages. Raises `ProgramError`."""
    try:
        return msgspec.convert(tomllib.loads(text), Target, strict=True)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError, OverflowError) as error:
        raise ProgramError(Diagnostic("E0502", f"{name} is not a target: {error}")) from None


def _folder() -> resources.abc.Traversable:
    return resources.files("tpucc") / "targets"


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(Diagnostic("E0503", f"can't read the target {path}: {error}")) from None
