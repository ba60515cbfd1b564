"""The state of a training as a file: from it, training goes on to the bits of not having stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tpucc.diagnostics import Diagnostic, InputError, printable
from tpucc.interop.archive import npz_bytes, read_arrays
from tpucc.ir.graph import Graph
from tpucc.ir.printer import print_graph
from tpucc.numerics import AnyArray

STATE = "state/"
"""Before the keys of states in the file; other keys are those of the training."""


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
    losses: tuple[float, ...] = ()
    epochs: tuple[Mapping[str, Any], ...] = ()
    graph: str = field(default="", compare=False)
    """The digest of the step graph that made it."""

    def to_bytes(self) -> bytes:
        """An npz archive, equal for equal states."""
        arrays: dict[str, AnyArray] = {STATE + key: value for key, value in self.values.items()}
        arrays["seed"], arrays["step"], arrays["until"] = (np.asarray(n, np.int64) for n in (self.seed, self.step, self.until))
        arrays["losses"] = np.asarray(self.losses, np.float32)
        text = json.dumps({"epochs": self.epochs, "graph": self.graph}, separators=(",", ":"))
        return npz_bytes(arrays | {"history": np.frombuffer(text.encode(), np.uint8)})

    def after(self, values: Mapping[str, AnyArray], loss: float) -> State:
        """The state one step later."""
        return State(values, self.seed, self.step + 1, self.until, (*self.losses, loss), self.epochs, self.graph)


def digest(graph: Graph) -> str:
    """A digest of a graph's text, without its places in the source."""
    return hashlib.sha256(print_graph(graph, origins=False).encode()).hexdigest()


def read_state(path: Path, wanted: Mapping[str, tuple[int, ...]]) -> State:
    """The state in a file; `wanted` are the shapes of its values by key.

    Raises `InputError` E0943 for a file that isn't a state, and for one with other values.
    """
    arrays = read_arrays(path)
    found = {key.removeprefix(STATE): array for key, array in arrays.items() if key.startswith(STATE)}
    if not found:
        raise InputError(Diagnostic("E0943", f"{path} is not a state of a training: it has no states", help=("train writes state.npz",)))
    if problem := _misfit(found, wanted):
        mend = "a state goes with the source, the optimizer and the params that it was trained with"
        raise InputError(Diagnostic("E0943", f"{path}: {problem}", help=(mend,)))
    try:
        history = json.loads(bytes(arrays["history"].astype(np.uint8)))
        numbers = {name: int(arrays[name]) for name in ("seed", "step", "until")}
        losses = tuple(float(loss) for loss in arrays["losses"])
        values = {key: np.asarray(array, np.float32) for key, array in found.items()}
        made = State(values, losses=losses, epochs=tuple(history["epochs"]), graph=str(history["graph"]), **numbers)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(Diagnostic("E0943", f"{path} is not a state of a training: {type(error).__name__}: {error}")) from None
    if min(made.seed, made.step, made.until) < 0:
        raise InputError(Diagnostic("E0943", f"{path} is not a state of a training: a negative number of steps or a negative seed"))
    return made


def _misfit(found: Mapping[str, AnyArray], wanted: Mapping[str, tuple[int, ...]]) -> str:
    for key in sorted(found.keys() ^ wanted.keys()):
        return f"{printable(key)} is {'not a state of this training' if key in found else 'missing'}"
    for key, shape in wanted.items():
        if found[key].shape != shape or found[key].dtype.kind != "f":
            return f"{printable(key)} is {found[key].dtype}{list(found[key].shape)}, expected float32{list(shape)}"
    return ""
