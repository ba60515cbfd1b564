"""What a pass is.

```python
@dataclass(frozen=True)
class DropDeadCode:
    name = "dead-code"
    summary = "removes nodes that no output needs"

    def run(self, graph: Graph, context: Context) -> Graph: ...
```

Options are fields with defaults of type int, float, str or bool; they become command-line options (`--dead-code-FIELD`). The driver
verifies, times and dumps around each pass; a pass does none of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from tpucc.ir.dtypes import DEFAULT_FORMAT, DeviceFormat
from tpucc.ir.graph import Graph
from tpucc.numerics import AnyArray
from tpucc.target import Target


@dataclass(frozen=True)
class Context:
    """What a pass may know beside the graph.

    `calibration` has one array for each model input, as given (its batch need not be the model's); None when there is none and
    standard-normal inputs stand in. `warn` collects what the user should hear. `cores` share the batch; `format` is how the device holds
    values. `holders` says for each value of the operator graph that the device has which node of the layer graph holds it: `quantise`
    fills it, and passes after it that make other nodes hold other values keep it true.
    """

    target: Target
    calibration: Mapping[str, AnyArray] | None = None
    warnings: list[str] = field(default_factory=list, compare=False)
    cores: int = 1
    format: DeviceFormat = DEFAULT_FORMAT
    holders: dict[str, str] = field(default_factory=dict, compare=False)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


@runtime_checkable
class Pass(Protocol):
    """A rewrite of the graph. `level` is the lowest `-O` at which it runs; 0 is for passes that compiling needs."""

    name: ClassVar[str]
    summary: ClassVar[str]
    level: ClassVar[int]

    def run(self, graph: Graph, context: Context) -> Graph: ...


def options_of(step: Pass) -> tuple[Field[Any], ...]:
    """The options of a pass: the fields of its dataclass, class variables left out."""
    return fields(step) if is_dataclass(step) else ()
