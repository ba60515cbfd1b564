"""Compiling many points: what they share is made once.

A compile asks its target questions: a number, a derived number, the cycles of a transfer. A target that gives the same answers gets the
same program. So the answers are kept beside what was made of them, and nobody needs to know which stage reads which field (decision 41).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from tpucc.compilation import Recorder, State
from tpucc.driver import back_end, choose_for_stream, drafts_of, drafts_with_room, explaining, read_model, run_passes
from tpucc.interop.sources import read_source
from tpucc.isa.program import Program
from tpucc.options import Options
from tpucc.target import Target, require_compilable

T = TypeVar("T")
Question = tuple[str, tuple[Hashable, ...]]
"""A field, a property or a method of a target, and the arguments of the call."""
QUESTIONS = frozenset(
    [f.name for f in msgspec.structs.fields(Target)]
    + [name for name, value in getmembers(Target) if isinstance(value, property) or (isfunction(value) and not name.startswith("_"))]
)
GRAPHS, PROGRAMS = 4, 4
"""How many results of each kind are kept: points come in an order in which neighbours share most."""


class Asked(Target, frozen=True, kw_only=True, eq=False, dict=True):
    """A target that keeps the questions that it was asked, with its answers.

    Only itself is equal to it: what others have cached of an equal target would be a question that isn't asked.
    """

    def __getattribute__(self, name: str) -> Any:
        get = super().__getattribute__
        plain = get("__dict__").get("plain") if name in QUESTIONS else None
        if plain is None:
            return get(name)
        answers, value = get("__dict__")["answers"], getattr(plain, name)
        if callable(value):
            return partial(_called, answers, name, value)
        answers[name, ()] = value
        return value


def _called(answers: dict[Question, object], name: str, method: Callable[..., object], *arguments: Hashable) -> object:
    answer = answers[name, arguments] = method(*arguments)
    return answer


def asked(target: Target) -> tuple[Asked, dict[Question, object]]:
    """The target as one that keeps its answers, and where they are kept."""
    made = Asked(**msgspec.structs.asdict(target))
    answers: dict[Question, object] = {}
    vars(made).update(plain=target, answers=answers)
    return made, answers


def answer(target: Target, question: Question) -> object:
    """What a target says to a question."""
    name, arguments = question
    value = getattr(target, name)
    return value(*arguments) if callable(value) else value


@dataclass(frozen=True, eq=False)
class Known(Generic[T]):
    """Results, each with the answers that it was made of; those that weren't used for longest are dropped."""

    most: int
    _kept: list[tuple[dict[Question, object], T]] = field(default_factory=list)

    def get(self, target: Target, make: Callable[[Target], T]) -> T:
        """The result for a target: one that the same answers gave, or a new one by `make`, which asks the target that it gets."""
        for place, (answers, kept) in enumerate(self._kept):
            if all(answer(target, question) == said for question, said in answers.items()):
                self._kept.append(self._kept.pop(place))
                return kept
        asking, answers = asked(target)
        made = make(asking)
        self._kept.append((answers, made))
        del self._kept[: -self.most]
        return made


@dataclass(frozen=True, eq=False)
class _Passed:
    """The layer graph of one set of answers, and the programs made of it."""

    state: State
    programs: Known[Program | None]
    """None where the graph has no room."""


class Compiler:
    """Compiles points of one sweep. Code of the user's may look at a target in ways that can't be seen: with it nothing is shared but the
    model, its weights and its calibration inputs. `extra_asks` says that extra passes aren't the user's, and ask as built-in ones do."""

    def __init__(self, *, extra_asks: bool = False) -> None:
        self._extra_asks = extra_asks
        self._read: dict[Hashable, tuple[State, Known[_Passed]]] = {}
        """The model that was asked for last: points come in an order in which all of a model's are neighbours."""
        self.made = {"models": 0, "graphs": 0, "programs": 0}
        """How much was made: what points share counts once."""

    def program(self, path: Path, options: Options) -> Program:
        """The program of a model for these options, the same as a compile of its own gives. Raises the errors of `compile_source`."""
        require_compilable(options.target)
        state, graphs = self._model(path, options)
        own = (bool(options.passes) and not self._extra_asks) or options.stages.replaced
        passed = (Known[_Passed](1) if own else graphs).get(options.target, partial(self._passed, state, options))
        made = (Known[Program | None](1) if own else passed.programs).get(options.target, partial(self._program, passed.state))
        if made is None:
            made = self._sparing_program(passed.state, options)
        return replace(made, target=options.target)

    def _model(self, path: Path, options: Options) -> tuple[State, Known[_Passed]]:
        key = str(path), tuple(options.params.items())
        if key not in self._read:
            self.made["models"] += 1
            state = State(read_source(path, options.params), options)
            with explaining(state):
                read_model(state, path.parent, Recorder(None, None))
            self._read = {key: (state, Known[_Passed](GRAPHS))}
        return self._read[key]

    def _passed(self, read: State, options: Options, target: Target) -> _Passed:
        self.made["graphs"] += 1
        state = _with_target(read, target)
        assert state.graph is not None
        with explaining(state):
            choose_for_stream(state, state.graph)
            run_passes(state, state.graph, Recorder(None, None))
        return _Passed(state, Known[Program | None](PROGRAMS))

    def _program(self, passed: State, target: Target) -> Program | None:
        """The program of a layer graph; None where that has no room in the unified buffer."""
        self.made["programs"] += 1
        state = _with_target(passed, target)
        with explaining(state):
            drafts = drafts_of(state)
            if drafts.shortage is None:
                back_end(state, Recorder(None, None), drafts)
        return state.program

    def _sparing_program(self, read: State, options: Options) -> Program:
        """The program of the layer graph that takes the fewest rows of the unified buffer."""
        self.made["graphs"] += 1
        self.made["programs"] += 1
        state, recorder = _with_target(read, options.target), Recorder(None, None)
        assert state.graph is not None
        with explaining(state):
            back_end(state, recorder, drafts_with_room(state, state.graph, recorder, sparing=True))
        assert state.program is not None
        return state.program


def _with_target(state: State, target: Target) -> State:
    """The state for a target of its own, whose later results leave the first one as it is."""
    return replace(state, options=replace(state.options, target=target), warnings=list(state.warnings), rewritten=list(state.rewritten))
