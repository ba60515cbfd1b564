"""The state of a training as a file: from it, training goes on to the bits of not having stopped."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, overload

import msgspec
import numpy as np

from tpucc.data.archive import Archive, Member, npz_bytes
from tpucc.diagnostics import Diagnostic, InputError, counted, printable
from tpucc.explain.quality import Measure
from tpucc.ir import Graph
from tpucc.ir.printer import print_graph
from tpucc.numerics import AnyArray

STATE = "state/"
"""Before the keys of values in the file; other keys are those of the training."""
NUMBERS = ("seed", "step", "until")
LARGEST = 2**31 - 1
"""Of these numbers: dropout draws from seed and step, as int32."""


@dataclass(frozen=True)
class Epoch:
    """What is known at the end of an epoch: see `history.json` in the reference."""

    number: int
    loss: float
    losses: Annotated[list[float], msgspec.Meta(min_length=1)]
    held_out: Mapping[Measure, float]
    gradients: Mapping[str, float]
    ranges: Mapping[str, Annotated[list[float], msgspec.Meta(min_length=2, max_length=2)]]


@dataclass(frozen=True)
class History:
    """What a state's file says in words: JSON."""

    epochs: tuple[Epoch, ...]
    graph: str


@dataclass(frozen=True)
class State:
    """Where a training is.

    `values` are arrays by key: all weights, the fixed ones too, and what the optimizer keeps. `step` steps are done, in the order that
    `seed` gives. `losses` are those of the current epoch's steps, `epochs` the entries of the history, one an epoch that is done. `until`
    is the step at which the training was to end.
    """

    values: Mapping[str, AnyArray]
    seed: int
    step: int = 0
    until: int = 0
    losses: Sequence[float] = ()
    epochs: tuple[Mapping[str, Any], ...] = ()
    graph: str = field(default="", compare=False)
    """The digest of the step graph that made it."""

    def to_bytes(self) -> bytes:
        """An npz archive, equal for equal states."""
        arrays: dict[str, AnyArray] = {STATE + key: value for key, value in self.values.items()}
        arrays["seed"], arrays["step"], arrays["until"] = (np.asarray(n, np.int64) for n in (self.seed, self.step, self.until))
        arrays["losses"] = np.asarray(self.losses, np.float32)
        return npz_bytes(arrays | {"history": np.frombuffer(_json(self.epochs, self.graph), np.uint8)})

    def after(self, values: Mapping[str, AnyArray], loss: float) -> State:
        """The state one step later."""
        return State(values, self.seed, self.step + 1, self.until, Grown.by(self.losses, loss), self.epochs, self.graph)


class Grown(Sequence[float]):
    """The first `count` of `numbers`, a list that those share which are longer by one: so a step's losses take no copy of those before."""

    __slots__ = ("_count", "_numbers")

    def __init__(self, numbers: list[float], count: int) -> None:
        self._numbers, self._count = numbers, count

    @classmethod
    def by(cls, before: Sequence[float], number: float) -> Grown:
        """One number longer. Where the list has a longer one already, a copy of it is."""
        numbers = before._numbers if isinstance(before, Grown) and len(before._numbers) == len(before) else list(before)
        numbers.append(number)
        return cls(numbers, len(before) + 1)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> list[float]: ...
    def __getitem__(self, place: int | slice) -> float | list[float]:
        places = range(self._count)[place]
        return self._numbers[places] if isinstance(places, int) else [self._numbers[i] for i in places]

    def __iter__(self) -> Iterator[float]:
        return islice(self._numbers, self._count)


def digest(graph: Graph) -> str:
    """A digest of a graph's text, without its places in the source."""
    return hashlib.sha256(print_graph(graph, origins=False).encode()).hexdigest()


def is_state(path: Path) -> bool:
    """Whether an archive has states. Raises `InputError` for a file that is no archive."""
    with Archive(path) as archive:
        return any(key.startswith(STATE) for key in archive.members)


def read_state(path: Path, shapes: Mapping[str, tuple[int, ...]], steps: int) -> State:
    """The state in a file; `shapes` are those of its values by key, and an epoch has so many steps.

    Raises `InputError` E0943 for a file that isn't a state, and for one with other values.
    """
    if not is_state(path):
        raise _refused(path, "it has no states, so it isn't a state of a training", "train writes state.npz; --weights takes weights.npz")
    with Archive(path) as archive:
        wanted = {STATE + key: f"float32{list(shape)}" for key, shape in shapes.items()}
        if problem := _misfit(archive.members, wanted):
            raise _refused(path, problem, "a state goes with the source, the optimizer and the params that it was trained with")
        arrays = {key: archive.read(key) for key in archive.members}
    for key in (*wanted, "losses"):
        if not np.isfinite(arrays[key]).all():
            raise _refused(path, f"{_called(key)} has values that are infinite or not a number")
    for name in NUMBERS:
        if not 0 <= arrays[name] <= LARGEST:
            raise _refused(path, f"{name} is {arrays[name]:,}, expected 0 to {LARGEST:,}")
    if len(arrays["losses"]) > (done := int(arrays["step"]) % steps):
        found, of = counted(len(arrays["losses"]), "step"), f"{done:,} of {counted(steps, 'step')}"
        problem = f"it has the losses of {found} of an epoch, and of this epoch {of} are done"
        raise _refused(path, problem, "go on with the batch and the examples that it was trained with")
    if (history := _history(arrays["history"].tobytes())) is None:
        raise _refused(path, "its history isn't one of a training")
    values = {key.removeprefix(STATE): np.asarray(arrays[key], np.float32) for key in wanted}
    numbers = {name: int(arrays[name]) for name in NUMBERS}
    return State(values, losses=tuple(arrays["losses"].tolist()), epochs=tuple(map(vars, history.epochs)), graph=history.graph, **numbers)


def _called(key: str) -> str:
    return printable(key.removeprefix(STATE))


def _refused(path: Path, problem: str, mend: str = "") -> InputError:
    return InputError(Diagnostic("E0943", f"{path}: {problem}", help=(mend,)))


def _misfit(members: Mapping[str, Member], wanted: Mapping[str, str]) -> str:
    """What is wrong with the arrays of a state, by their headers; `wanted` are its states."""
    others = dict.fromkeys(NUMBERS, "int64[]") | {"losses": "float32[…]", "history": "uint8[…]"}
    for key in sorted(members.keys() ^ (wanted.keys() | others.keys())):
        return f"{_called(key)} is {'not a state of this training' if key in members else 'missing'}"
    for key, kind in {**wanted, **others}.items():
        found = members[key]
        if str(found) != kind.replace("…", str(math.prod(found.shape))):
            return f"{_called(key)} is {found}, expected {kind}"
    return ""


def _json(epochs: Sequence[Mapping[str, Any]], graph: str) -> bytes:
    return json.dumps({"epochs": epochs, "graph": graph}, separators=(",", ":")).encode()


def _history(text: bytes) -> History | None:
    """The history of a state; None where it isn't as `State.to_bytes` writes it."""
    with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
        found = msgspec.json.decode(text, type=History)
        return found if _json([*map(vars, found.epochs)], found.graph) == text else None
    return None
