"""What tpucc knows of an operator of ONNX: one row for each.

A row is a function that builds the operator of tpucc. Its positional parameters are the operands, its keyword parameters are the attributes
with their defaults, and the annotations say the kinds of both. From these follow the checks of a node, the computing of constants, and the
page of operators in docs/. Facts say what the import asks of an operator that it doesn't build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache, reduce
from inspect import Parameter as Kind
from inspect import signature
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tpucc.interop.onnx.reading.building.call import Call, Result, known, normal
from tpucc.interop.onnx.reading.building.values import Tensor, Value
from tpucc.interop.onnx.reading.files.model import OnnxNode
from tpucc.interop.onnx.reading.files.problems import Misfit, require
from tpucc.numerics import AnyArray

Number = Annotated[float, "a number"]
"""A known operand of one value."""
Axis = Annotated[int, "an axis"]
"""An axis of the first operand, counted from the first."""
Positive = Annotated[int, "positive"]
"""An integer from 1 on."""
Ints = tuple[int, ...]
Floats = tuple[float, ...]
Texts = tuple[str, ...]
CONSTANT = (AnyArray, Floats, Ints, Number)
"""The kinds of operands that must be known."""
F = TypeVar("F", bound=Callable[..., Any])
Fold = Callable[[OnnxNode, Sequence[AnyArray]], Any]
"""What computes the result of constants."""


Size = Callable[[OnnxNode, Sequence[AnyArray]], int]
"""How many values the result of constants has at most."""


class Fact(Enum):
    """What is true of an operator."""

    CONDITION = "the result is true or false"
    AXES = "the results have the axes of the operands"
    EXACT = "NumPy computes it to the same bits on every processor"
    IMAGES = "its first operand is an image, [N, C, H, W] or [N, C, L]"
    KEEPS = "the results have values of the first operand, or values between them"
    INTEGERS = "it makes, compares or scales the integers of quantised values, or only their shape matters"
    REAL = "the results are no integers, whatever the operands are"
    VIEW = "the result has the values of the first operand, and no others"
    WHOLE = "the results of whole numbers are whole"


@dataclass(frozen=True, slots=True)
class Parameter:
    """An operand or an attribute. The kind is a type without None."""

    name: str
    kind: Any
    is_optional: bool
    default: Any
    is_any_number: bool = False
    group: str = ""
    """The parameter whose dataclass it is a field of."""


@dataclass(frozen=True)
class Row:
    """An operator by its name, with its domain if it isn't ONNX's own. Without `build` it is read of constants only. `fold` computes the
    result of constants where neither `build` nor onnx.reference is to, and `size` is how many values it has at most, where that isn't
    the size of the operands' common shape. `ignored` are attributes that change nothing here."""

    op: str
    build: Callable[..., Result] | None
    facts: frozenset[Fact]
    fold: Fold | None = None
    size: Size | None = None
    ignored: Sequence[str] = ()
    operands: Sequence[Parameter] = field(default=())
    attributes: Mapping[str, Parameter] = field(default_factory=dict)
    groups: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """The dataclasses of attributes that several operators have, by the names of the parameters."""

    def built(self, call: Call) -> Result:
        """The result of a node. Raises `Misfit` for operands and attributes of other kinds, and `Unsupported`."""
        assert self.build is not None
        return self.build(call, *self._given(call), **self._attributes(call))

    def require_kinds(self, call: Call) -> None:
        """Raises `Misfit` for attributes, lists and numbers of other kinds than the operator's."""
        for index, parameter in enumerate(self.operands):
            if parameter.kind in CONSTANT and call.has(index):
                _of_kind(call, call.value(index), parameter.kind, parameter.name.rstrip("_"))
        self._attributes(call)

    def _given(self, call: Call) -> list[Any]:
        operands, missing = list(self.operands), len(call.inputs) - len(self.operands)
        if operands and operands[-1].is_any_number:
            operands += [operands.pop()] * (missing + 1)
        require(len(call.inputs) <= len(operands))
        return [_operand(call, index, parameter) for index, parameter in enumerate(operands)]

    def _attributes(self, call: Call) -> dict[str, Any]:
        found: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {parameter.group: {} for parameter in self.attributes.values() if parameter.group}
        for name, parameter in self.attributes.items():
            into = groups[parameter.group] if parameter.group else found
            if name in call.node.attributes:
                into[parameter.name] = _attribute(call, call.node.attributes[name], parameter.kind)
            elif parameter.default is Kind.empty:
                raise Misfit
            elif parameter.kind is Axis and parameter.default is not None:
                into[parameter.name] = _axis(call, parameter.default)
        return found | {name: self.groups[name](**values) for name, values in groups.items()}


ROWS: dict[str, Row] = {}
"""By the operators' names."""


def operator(*words: str | Fact, fold: Fold | None = None, size: Size | None = None, ignored: str = "") -> Callable[[F], F]:
    """Makes a function the row of operators with these names and facts."""

    def register(build: F) -> F:
        for name in words:
            if isinstance(name, str):
                add_row(name, build, [word for word in words if isinstance(word, Fact)], fold, size, ignored.split())
        return build

    return register


def of_constants(*words: str | Fact, fold: Fold | None = None, size: Size | None = None) -> None:
    """Adds rows of operators that are read of constants only."""
    for name in words:
        if isinstance(name, str):
            _add(Row(name, None, frozenset(word for word in words if isinstance(word, Fact)), fold, size))


def add_row(
    name: str,
    build: Callable[..., Any],
    facts: Sequence[Fact],
    fold: Fold | None = None,
    size: Size | None = None,
    ignored: Sequence[str] = (),
) -> None:
    """Adds the row of an operator. Raises `TypeError` for an operator that has one."""
    operands, attributes, groups = parameters_of(build)
    _add(Row(name, build, frozenset(facts), fold, size, ignored, operands, attributes, groups))


def _add(row: Row) -> None:
    if row.op in ROWS:
        raise TypeError(f"ONNX's {row.op} has two rows: take one of them out")
    ROWS[row.op] = row


def nothing(_: OnnxNode, __: Sequence[AnyArray]) -> int:
    """The size of a view of an operand, which takes no memory."""
    return 0


def has(op: str, fact: Fact) -> bool:
    """Whether a fact is true of an operator."""
    return op in ROWS and fact in ROWS[op].facts


def places_of_rows() -> Mapping[str, int]:
    """Which operand of an operator has numbers of rows or of classes, by the names of such operators."""
    found = ((name, place) for name, row in ROWS.items() for place, operand in enumerate(row.operands) if operand.name == "indices")
    return dict(found)


@cache
def parameters_of(
    build: Callable[..., Any],
) -> tuple[Sequence[Parameter], Mapping[str, Parameter], Mapping[str, Callable[..., Any]]]:
    """The operands and the attributes of a function, the attributes by their names in ONNX; and the dataclasses of attributes."""
    hints, operands = get_type_hints(build, include_extras=True), []
    attributes, groups = dict[str, Parameter](), dict[str, Callable[..., Any]]()
    for name, found in list(signature(build).parameters.items())[1:]:
        kind, is_optional = _without_none(hints[name])
        made = Parameter(name, kind, is_optional, found.default, found.kind is Kind.VAR_POSITIONAL)
        if found.kind is not Kind.KEYWORD_ONLY:
            operands.append(made)
        elif is_dataclass(kind):
            groups[name] = cast("Callable[..., Any]", kind)
            attributes.update(_fields(name, kind))
        else:
            attributes[name.rstrip("_")] = made
    return tuple(operands), attributes, groups


def _fields(group: str, kind: Any) -> Iterator[tuple[str, Parameter]]:
    """The attributes that are fields of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        default = Kind.empty if each.default is MISSING else each.default
        yield each.name, Parameter(each.name, *_without_none(hints[each.name]), default, group=group)


def _without_none(hint: Any) -> tuple[Any, bool]:
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    rest = [part for part in parts if part is not NoneType]
    return reduce(or_, rest), len(rest) < len(parts)


def _operand(call: Call, index: int, parameter: Parameter) -> Any:
    """An operand of this kind; in the place of one that isn't there an attribute of its name, as old versions of an operator have it."""
    value = call.inputs[index] if index < len(call.inputs) else None
    name = parameter.name.rstrip("_")
    if value is not None:
        return _of_kind(call, value, parameter.kind, name)
    if parameter.kind in (Ints, Floats, Number) and name in call.node.attributes:
        found = call.node.attributes[name]
        return float(found) if parameter.kind == Number else tuple(found)
    require(parameter.is_optional)
    return None


def _of_kind(call: Call, value: Value, kind: Any, name: str) -> Any:
    if kind == Value:
        return value
    if kind is Tensor:
        return call.net.tensor(value)
    array = known(value, f"its {name}")
    shape = list(array.shape)
    if kind == Number:
        require(shape in ([], [1]))
        return float(array.reshape(()))
    require(kind not in (Floats, Ints) or len(shape) == 1 or (call.node.op == "Unsqueeze" and not shape))  # as ONNX Runtime reads it
    if kind == Ints:
        require(array.dtype.kind in "iu")
        return tuple(int(number) for number in array.reshape(-1))
    return tuple(float(number) for number in array.reshape(-1)) if kind == Floats else array


def _axis(call: Call, axis: int) -> int:
    return normal(axis, len(call.value(0).shape))


def _attribute(call: Call, value: Any, kind: Any) -> Any:
    """An attribute as a row takes it; its type the package onnx has checked."""
    if get_origin(kind) is Literal:
        require(value in ("", *get_args(kind)))
    require(kind is not Positive or value >= 1)
    require(kind is not bool or value in (0, 1))
    return _axis(call, value) if kind is Axis else bool(value) if kind is bool else value
