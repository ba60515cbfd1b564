"""A training in progress: steps, epochs, what is measured at the end of each, and what is written in the end."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tpucc.data.archive import npz_bytes
from tpucc.data.weights import weights_of
from tpucc.diagnostics import Diagnostic, InputError, Source, TrainingError, UsageError, listed
from tpucc.floating.arithmetic import Arithmetic
from tpucc.floating.matrix_unit import Machine
from tpucc.ir import Graph, Node
from tpucc.language.elaborate import Model
from tpucc.language.training import Training
from tpucc.machines.v2.links import possible
from tpucc.numerics import AnyArray
from tpucc.passes.not_finite import FirstNotFinite
from tpucc.target import Target, load_target
from tpucc.training.arithmetic import NUMPY
from tpucc.training.device import Device
from tpucc.training.examples import Examples, read_examples
from tpucc.training.heldout import HeldOut
from tpucc.training.initial import given_weights, initial_weights
from tpucc.training.lowering.lower import lower
from tpucc.training.numerics import Numerics
from tpucc.training.operators.state import StateAttributes
from tpucc.training.passes.names import DRAW, GRADIENT, NEXT, key_of, loss_of, states, values_of
from tpucc.training.passes.optimizer import optimizer_step
from tpucc.training.plan import Plan
from tpucc.training.state import LARGEST, Epoch, State, digest, read_state
from tpucc.training.step import Step, make_step

HOST = "host"
"""The target whose arithmetic is float32 as NumPy computes it."""
EPOCHS = 5


EXECUTORS: Mapping[str, str] = {
    "reference": "the step's graph is computed operator by operator",
    "machine": "its program is executed, instruction by instruction, with the same bits",
}
"""What computes the steps, the default first."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the command line and `tpucc.train` ask for beside the source: see there."""

    epochs: int | None = None
    steps: int | None = None
    cores: int = 1
    microbatches: int = 1
    activations: str = "f32"
    statistics: str = "two-pass"
    target: str = HOST
    executor: str = "reference"
    examples: Path | Mapping[str, AnyArray] | None = None
    held_out: Path | Mapping[str, AnyArray] | None = None
    weights: Path | None = None
    seed: int | None = None
    resume: Path | None = None

    @property
    def numerics(self) -> Numerics:
        """Raises `UsageError` E0529 for a choice that there isn't."""
        return Numerics(activations=self.activations, statistics=self.statistics)


class Session:
    """A training of one model. `run` trains; `state` is where it is, and always that after a whole step."""

    def __init__(self, model: Model, source: Source, folder: Path, stem: str, settings: Settings) -> None:
        """`folder` is that of `source`, `stem` its name without suffix.

        Raises what reading the examples, the weights and the state raises, what `make_step` and `lower` do, and `UsageError` E0529, E0947
        and E0951.
        """
        assert model.training is not None
        if settings.epochs is not None and settings.steps is not None:
            raise UsageError(Diagnostic("E0529", "both epochs and steps say where training ends", help=("give one of them",)))
        if settings.resume is not None and (settings.seed is not None or settings.weights is not None):
            raise UsageError(
                Diagnostic("E0529", "a state has its own seed and weights", help=("--resume takes no --seed and no --weights",))
            )
        self.model, self.source, self.settings, self.parts = model, source, settings, parts_for(settings.cores, settings.microbatches)
        self.arithmetic = arithmetic_of(settings.target)
        self.step: Step = make_step(model.training, settings.cores, settings.microbatches, settings.numerics)
        self.examples: Examples = read_examples(model, folder, settings.examples)
        self.weights = _initial(model, settings, settings.seed or 0)
        begun = None if settings.resume is None else read_state(settings.resume, self._shapes(), self.examples.steps)
        self.held_out, missing = HeldOut.find(model.graph, folder / f"{stem}_test.npz", settings.held_out, self.arithmetic)
        self.notes = [*self.step.notes, *self.examples.notes, *missing]
        self._states = {node.name: key_of(node) for node in states(self.step.graph)}
        self._gradients = _gradients(self.step)
        self._plan = Plan(self.step.graph, self.arithmetic, tuple(self._gradients.values()))
        self.device = _device(self.step, settings)
        """What executes the steps' program; None where the graph is computed."""
        self._loss = loss_of(self.step.graph)
        moved = values_of(self.step.graph, NEXT)
        self._moved = {key: moved[name] for name, key in self._states.items()}
        self._read = self._states | {node.name: key for key, node in weights_of(self.step.graph).items()}
        self._draws = any(node.name == DRAW for node in self.step.graph.inputs)
        self._earlier: State | None = None
        self.state = self._first() if begun is None else self._resumed(begun)

    @property
    def trained(self) -> dict[str, AnyArray]:
        """The model's weights by key, as they are now: those that are trained, and the fixed ones."""
        return self._weights(self.state)

    @property
    def divided(self) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
        """`trained` in two: the weights, and the statistics of batch normalisation, which no gradient moves."""
        statistics = self.step.statistics
        weights, averages = ({key: value for key, value in self.trained.items() if (key in statistics) is side} for side in (False, True))
        return weights, averages

    @property
    def core_counts(self) -> list[int]:
        """The numbers of cores of a machine that can share the batch, and that of the settings."""
        return sorted({*possible(self.examples.batch, self.settings.microbatches), self.settings.cores})

    @property
    def rates(self) -> Target:
        """The machine by whose rates the exchange among cores is computed: the target, and TPU v2 for the host."""
        return load_target("tpu_v2" if self.settings.target == HOST else self.settings.target)

    @property
    def history(self) -> dict[str, Any]:
        """What `history.json` has."""
        optimizer = self.training.optimizer
        return {
            "model": self.model.graph.name,
            "target": self.settings.target,
            "cores": self.settings.cores,
            "microbatches": self.settings.microbatches,
            **self.settings.numerics.changed,
            "batch": self.examples.batch,
            "examples": self.examples.count,
            "seed": self.state.seed,
            "optimizer": {"name": optimizer.name, **dict(optimizer.parameters)} if optimizer else {},
            "steps": self.state.step,
            "epochs": list(self.state.epochs),
        }

    @property
    def training(self) -> Training:
        assert self.model.training is not None
        return self.model.training

    def files(self) -> dict[str, bytes]:
        """`weights.npz`, `state.npz` and `history.json`: the same bytes for the same training, whenever it runs.

        On the target tpu_v2 they are the same wherever it runs. On the target `host` NumPy multiplies: its last bits, and so the files,
        differ between processors.
        """
        return {
            "weights.npz": npz_bytes(self.trained),
            "state.npz": self.state.to_bytes(),
            "history.json": (json.dumps(self.history, indent=1) + "\n").encode(),
        }

    def run(self) -> Iterator[Epoch | None]:
        """Trains until the last step. Yields None after a step, or the epoch that ends with it.

        A step is done when what is measured after it is done: one that an exception interrupts leaves the state as it was. Raises
        `TrainingError` E0944 when the loss is NaN or infinite, and when a state is that at the end of an epoch or of the training;
        `InputError` E0454 for a label or an index that doesn't exist.
        """
        while self.state.step < self.state.until:
            try:
                epoch = self._advance()
            except InputError as error:
                raise error.at(source=self.source) from None
            yield epoch

    def _advance(self) -> Epoch | None:
        state, values = self._step(self.state)
        ends = state.step % self.examples.steps == 0
        if (ends or state.step == state.until) and not all(np.isfinite(value).all() for value in state.values.values()):
            raise self._not_finite(self.state)
        epoch = self._epoch(state, values if self.device is None else self._planned(self.state)) if ends else None
        if epoch is not None:
            state = replace(state, losses=(), epochs=(*state.epochs, vars(epoch).copy()))
        self._earlier, self.state = self.state, state
        return epoch

    def _step(self, before: State) -> tuple[State, Mapping[str, AnyArray]]:
        values = self._planned(before) if self.device is None else self.device.run(self._given(before), self._inputs(before))
        loss = float(values[self._loss])
        if not math.isfinite(loss):
            raise self._not_finite(before)
        return before.after({**before.values, **{key: values[name] for key, name in self._moved.items()}}, loss), values

    def _planned(self, before: State) -> Mapping[str, AnyArray]:
        """The loss, the new states and the gradients of the step after a state, computed operator by operator."""
        return self._plan.run(self._given(before), self._inputs(before))

    def _weights(self, state: State) -> dict[str, AnyArray]:
        return {key: state.values[key] for key in weights_of(self.model.graph)}

    def _given(self, state: State) -> dict[str, AnyArray]:
        return {name: state.values[key] for name, key in self._read.items()}

    def _inputs(self, state: State) -> list[dict[str, AnyArray]]:
        parts = self.examples.parts(state.seed, state.step, self.parts)
        for index, part in enumerate(parts if self._draws else ()):
            part[DRAW] = np.asarray([state.seed, state.step, index * (self.examples.batch // self.parts)], np.int32)
        return parts

    def _epoch(self, state: State, values: Mapping[str, AnyArray]) -> Epoch:
        weights = self._weights(state)
        return Epoch(
            number=state.step // self.examples.steps,
            loss=math.fsum(state.losses) / len(state.losses),
            losses=list(state.losses),
            held_out=self.held_out.measure(weights) if self.held_out else {},
            gradients={key: _norm(values[node]) for key, node in self._gradients.items()},
            ranges={key: [float(value.min()), float(value.max())] for key, value in weights.items()},
        )

    def _first(self) -> State:
        values = {}
        for node in states(self.step.graph):
            assert isinstance(node.attributes, StateAttributes)
            if (initial := node.attributes.initial) is not None:
                values[node.attributes.key] = np.full(node.type.shape, initial, np.float32)
        begun = State(self.weights | values, self.settings.seed or 0, graph=digest(self.step.graph))
        return replace(begun, until=self._until(begun))

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of a state's values by key."""
        weights = {key: value.shape for key, value in self.weights.items()}
        return weights | {key_of(node): node.type.shape for node in states(self.step.graph)}

    def _resumed(self, state: State) -> State:
        assert self.settings.resume is not None
        if state.graph != digest(self.step.graph):
            self.notes.append(
                f"{self.settings.resume.name} is of another step than this one: the source, the optimizer or the options differ"
            )
        return replace(state, until=self._until(state), graph=digest(self.step.graph))

    def _until(self, state: State) -> int:
        """The step at which the training ends: the one that was asked for, or the one that a state was on its way to.

        Raises `UsageError` E0529 for more steps than a state can count.
        """
        settings, steps = self.settings, self.examples.steps
        if settings.steps is None and settings.epochs is None and state.step < state.until:
            return state.until
        more = settings.steps if settings.steps is not None else (EPOCHS if settings.epochs is None else settings.epochs) * steps
        if state.step + more > LARGEST:
            raise UsageError(Diagnostic("E0529", f"a training has at most {LARGEST:,} steps, which is fewer than these"))
        return state.step + more

    def _not_finite(self, state: State) -> TrainingError:
        """The error of a loss or a state that isn't finite: it names the value that was it first, in this step or the one before."""
        for tried in (self._earlier, state):
            if tried is not None and (first := self._culprit(tried)) is not None:
                assert first.node is not None
                used = tried.step > 0 or first.node.name not in _reduced(self.step).by_name
                return TrainingError(_blamed(first.node, first, tried.step + 1, used), self.source)
        raise AssertionError("no value is infinite or NaN")

    def _culprit(self, state: State) -> FirstNotFinite | None:
        """The first value of the step after a state that isn't finite."""
        first = FirstNotFinite()
        self._plan.run(self._given(state), self._inputs(state), lambda node, values: first(node, *values))
        return first if first.node is not None else None


def _device(step: Step, settings: Settings) -> Device | None:
    """What executes the program of a step, if the settings ask for it. Raises `UsageError` E0529 for another executor than there are, and
    E0951 where there are no instructions."""
    if settings.executor not in EXECUTORS:
        raise UsageError(Diagnostic("E0529", f"executor is {listed([*EXECUTORS], 'or')}, found {settings.executor!r}"))
    if settings.executor == "reference":
        return None
    if settings.target == HOST:
        raise UsageError(Diagnostic("E0951", "the host executes no instructions", help=("--target tpu_v2 has them",)))
    return Device(lower(step, load_target(settings.target)))


def elements(arrays: Mapping[str, AnyArray]) -> int:
    """The number of elements of all arrays."""
    return sum(array.size for array in arrays.values())


def arithmetic_of(target: str) -> Arithmetic:
    """The arithmetic of a machine for floats, or the host's. Raises `UsageError` for a machine that has none."""
    return NUMPY if target == HOST else machine_arithmetic(load_target(target))


def machine_arithmetic(machine: Target) -> Arithmetic:
    """The arithmetic of a machine for floats. Raises `UsageError` E0946 for another machine."""
    if machine.data_type != "bfloat16":
        mend = "--target host trains in float32, --target tpu_v2, tpu_v3 and tpu_v4i in bfloat16"
        raise UsageError(Diagnostic("E0946", f"{machine.name} multiplies {machine.data_type}: it can't train", help=(mend,)))
    return Machine(machine.mxu)


def parts_for(cores: int, microbatches: int) -> int:
    """The parts of a batch. Raises `UsageError` E0947 for numbers that aren't powers of two, E0529 for ones that no batch has."""
    for name, count in (("cores", cores), ("microbatches", microbatches)):
        if count > LARGEST:
            raise UsageError(Diagnostic("E0529", f"{name} is at most {LARGEST:,}, found a number of {count.bit_length():,} bits"))
        if count < 1 or count & (count - 1):
            mend = "the sum over parts is a tree: 1, 2, 4, 8, …"
            raise UsageError(Diagnostic("E0947", f"{name} must be a power of two, found {count:,}", help=(mend,)))
    return cores * microbatches


def _initial(model: Model, settings: Settings, seed: int) -> dict[str, AnyArray]:
    """All weights: the model's, of the archive where there is one, and those that only `train` has. The source may have a seed for them."""
    assert model.training is not None
    seed = seed if model.random_seed is None else model.random_seed
    drawn = initial_weights(model.training.graph, seed)
    return drawn | (initial_weights(model.graph, seed) if settings.weights is None else given_weights(model.graph, settings.weights))


def _gradients(step: Step) -> dict[str, str]:
    """For each trained state, by key, the node of its gradient."""
    reduced = _reduced(step)
    found = values_of(reduced, GRADIENT).items()
    return {key_of(reduced[name]): node for name, node in found if node in step.graph.by_name}


def _reduced(step: Step) -> Graph:
    """The graph that the optimizer was added to: it computes the loss and the gradients, without a rate."""
    names = [stage.name for stage in step.stages]
    return step.stages[names.index(optimizer_step.name) - 1].graph


def _norm(value: AnyArray) -> float:
    """The Euclidean norm, from an exact sum: independent of the processor."""
    return math.sqrt(math.fsum(np.square(value, dtype=np.float64).ravel().tolist()))


def _blamed(node: Node, first: FirstNotFinite, step: int, used: bool) -> Diagnostic:
    """`used` tells whether the optimizer's rate had a part in the value."""
    message = f"in step {step:,}, {first.said}: the first value that is"
    if node.op == "cross_entropy":
        mend = "it takes the logarithm of probabilities, and here one is 0 or less; write cross_entropy(softmax(…), label)"
    elif used:
        mend = "a smaller rate keeps steps small; so do inputs and labels in a small range"
    else:
        outside = "no weight has changed yet: the inputs, the labels or the first weights are outside of what this operation takes"
        mend = first.help or outside
    return Diagnostic("E0944", message, first.labels, (mend,))
