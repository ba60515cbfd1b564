"""What a pass is, and what it gets.

A pass is a function. `@graph_pass` makes a pass of a function that looks at the graph as a whole, `@rules_pass` (see
`tpucc/passes/rules.py`) of one that gives rules:

```python
@graph_pass("dead-code", "removes nodes that no output needs", level=1)
def dead_code(graph: Graph, context: Context) -> Graph: ...
```

Its options are parameters by name alone, with defaults of type int, float, str or bool; they become command-line options
(`--PASS-OPTION`). A pass may also be a frozen dataclass with `name`, `summary`, `level` and `run`, whose fields are its options.

The driver verifies the graph after each pass, times the pass, and prints its result; a pass does none of that. A pass returns a graph, with
messages for the user if there are any, as in `return graph.noting("one sentence")`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import FunctionType, MappingProxyType
from typing import Any, Literal, Protocol, cast, get_args, runtime_checkable

from tpucc.diagnostics import Diagnostic, PluginError, UsageError, did_you_mean, listed, printable
from tpucc.ir import Graph
from tpucc.ir.dtypes import DEFAULT_FORMAT, DeviceFormat
from tpucc.numerics import AnyArray, read_only
from tpucc.target import Target

Goal = Literal["latency", "stream"]
GOALS: tuple[Goal, ...] = get_args(Goal)


@dataclass(frozen=True)
class Context:
    """The facts that a pass gets beside the graph; it can't change them.

    `calibration` has one array for each model input, as given (its batch need not be the model's); None when there is none and
    standard-normal inputs stand in. `cores` share the batch; `format` is how the device holds values. `on_host` are layers, by their names
    or the numbers of their lines, that the host computes in float32 though the device could. With `random_weights`, which the source asks
    for, the outputs mean nothing, nor does their accuracy.

    A pass that has several ways takes the one that serves the `goal` best: a batch that is done soon, its host's work included, or many
    batches in a stream, in which the host, its link and the device work side by side. A context that is `sparing` asks for the one of
    fewest rows of the unified buffer, which may depend on the sizes of the machine only, not on how fast it is.
    """

    target: Target
    calibration: Mapping[str, AnyArray] | None = None
    cores: int = 1
    format: DeviceFormat = DEFAULT_FORMAT
    on_host: tuple[str, ...] = ()
    sparing: bool = False
    goal: Goal = "latency"
    random_weights: bool = False

    def __post_init__(self) -> None:
        if self.calibration is not None:
            locked = {name: read_only(array) for name, array in self.calibration.items()}
            object.__setattr__(self, "calibration", MappingProxyType(locked))


@runtime_checkable
class Pass(Protocol):
    """A rewrite of the graph. `level` is the lowest `-O` at which it runs; 0 is for passes that compiling needs."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def level(self) -> int: ...
    def run(self, graph: Graph, context: Context) -> Graph: ...


Rewrite = Callable[..., Graph]
"""A function of a graph and a context, which may have options: parameters by name alone, each with a default."""


class GraphPass:
    """A pass that is a function of the graph and the context. The docstring of the function is the pass's.

    `options` are the values of the function's options. A pass that is called with some is the pass with these: `push_slices(rows=False)`.
    """

    def __init__(self, name: str, summary: str, level: int, function: Rewrite, options: Mapping[str, Any]) -> None:
        self.name, self.summary, self.level, self.function, self.options = name, summary, level, function, options
        self.__doc__, self.__module__ = function.__doc__, function.__module__

    def run(self, graph: Graph, context: Context) -> Graph:
        """The new graph."""
        return self.function(graph, context, **self.options)

    def __call__(self, **options: Any) -> GraphPass:
        """The pass with these options in place of its own."""
        return GraphPass(self.name, self.summary, self.level, self.function, {**self.options, **options})


def graph_pass(name: str, summary: str, *, level: int) -> Callable[[Rewrite], GraphPass]:
    """Makes a pass of the function below."""
    return lambda function: GraphPass(name, summary, level, function, cast(FunctionType, function).__kwdefaults__ or {})


class UserCode(Protocol):
    """Code of the user's: where it is written, and an error that names it. `tpucc.plugins` has it."""

    @property
    def file(self) -> str: ...
    @property
    def place(self) -> str: ...
    def error(self, code: str, message: str, *help: str, more: tuple[Diagnostic, ...] = ()) -> PluginError: ...


@dataclass(frozen=True)
class UserPass(ABC):
    """A pass of the user's. Its attributes have been read once, into plain values; `code` names it. `options` are the values of its
    options, those of a dataclass its defaults, `MISSING` where there is none."""

    name: str
    summary: str
    level: int
    after: str | None
    options: Mapping[str, object] = field(hash=False)
    code: UserCode

    @abstractmethod
    def run(self, graph: Graph, context: Context) -> Graph:
        """The graph that the user's pass makes, verified. Raises `PluginError`."""

    @abstractmethod
    def configured(self, values: Mapping[str, object]) -> UserPass:
        """The pass with these options in place of its own. Raises `PluginError` when it can't take them."""


def options_of(step: Pass) -> dict[str, object]:
    """The options of a pass with their values: those of a function, or the fields of a dataclass, class variables left out."""
    if isinstance(step, UserPass | GraphPass):
        return dict(step.options)
    return {each.name: getattr(step, each.name) for each in fields(step)} if is_dataclass(step) else {}


def with_options(step: Pass, values: Mapping[str, object]) -> Pass:
    """A pass with these options in place of its own. Raises `PluginError` when one of the user's can't take them."""
    if not values:
        return step
    if isinstance(step, UserPass):
        return step.configured(values)
    return step(**values) if isinstance(step, GraphPass) else replace(step, **values)  # type: ignore[type-var]


def require_choice(what: str, asked: str, choices: Sequence[str]) -> None:
    """Raises `UsageError` E0517 where an option has another value than one of `choices`; `what` says what is chosen, as "granularity"."""
    if asked not in choices:
        near = did_you_mean(asked, choices) or f"it is {listed(choices, 'or')}"
        raise UsageError(Diagnostic("E0517", f"no {what} is named {printable(asked)}", help=(near,)))
