"""Every figure that we print from the ISCA paper, and the published peaks of later chips: `published.toml` has each with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TypeVar

import msgspec

T = TypeVar("T")


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paper's arithmetic about TPU v1, and the ridge of TPU′."""

    peak_tops: float
    tile_fetch_cycles: float
    ridge_macs_per_byte: float
    prime_ridge_macs_per_byte: float
    accumulators_mib: float
    unified_buffer_mib: float


class Matrix600(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Section 7's example: one 600×600 matrix on a 256×256 (narrow) and on a 512×512 unit (wide)."""

    size: int
    batch: int
    narrow_steps: int
    narrow_microseconds: float
    wide_steps: int
    wide_microseconds: float
    fill_percent: float


class Inferences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Table 4: inferences a second within 7 ms."""

    application: str
    cpu: float
    gpu: float
    tpu: float


class Prime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many times as fast TPU′ is, over all six applications."""

    geometric_mean: float
    weighted_mean: float


class Application(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The figures of tables 1, 3, 5, 7 and 8 for one application. `table3` has the breakdown's keys of `stats.json`, in percent, and
    `tops`.

    Where nothing of the shapes is published, ours is another network of its kind and size: the comparison is `qualitative`.
    """

    kind: str
    batch: int
    macs_per_byte: float
    share: float
    table3: Mapping[str, float]
    host_percent: float
    model_error: float
    buffer_mib: float
    activation_bits: int = 8
    qualitative: bool = False


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A design of figure 11: factors of target fields, and by kind of application about how many times as fast it is."""

    name: str
    title: str
    scale: Mapping[str, float]
    about: Mapping[str, float]


class Peak(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published peak in 10¹² operations a second, of `chips` chips of a target."""

    target: str
    chips: int
    published: float
    source: str
    remark: str = ""


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    machine: Machine
    matrix_600: Matrix600
    inferences: Inferences
    prime: Prime
    applications: Mapping[str, Application]
    variants: tuple[Variant, ...]
    peaks: tuple[Peak, ...]


@cache
def published() -> Published:
    """The published figures; one value, read once."""
    return read_table("published.toml", Published)


def read_table(name: str, kind: type[T]) -> T:
    """A file of this package, as a value of `kind`."""
    return msgspec.convert(tomllib.loads((resources.files(__package__) / name).read_text("utf-8")), kind, strict=True)
