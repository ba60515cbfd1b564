"""`OpDef`: everything that the rest of tpucc knows about an operator, in one value.

An operator is one file of this package that ends in `OP = OpDef(...)`. The call syntax, the text form, the shape errors, the float
reference, the pictures and the documentation page follow from it. A rule that is forgotten fails when the file is loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tpucc.diagnostics import Origin
from tpucc.floating import arithmetic as floating
from tpucc.ir import Attributes, Node, TensorType
from tpucc.ir.node import Side
from tpucc.ops.facts import MOVED, Facts, Values
from tpucc.ops.gradient import Gradient
from tpucc.ops.onnx_form import OnnxForm
from tpucc.ops.parts import Shapes

A = TypeVar("A", bound=Attributes)
Array = npt.NDArray[Any]
Arrays = Sequence[Array]
"""The arrays of a node's operands, in order."""
Types = Sequence[TensorType]
"""The types of a node's operands, in order."""
Float64 = npt.NDArray[np.float64]


class RuleError(Exception):
    """A shape or type rule that doesn't hold.

    `code` is one of E0301 to E0315: one code a kind of rule, the same for all operators. `about` names the operands or the attribute to
    blame (an operand's index or an attribute's name); `help` is the correction. `{0}`, `{1}` in the texts stand for the operands as the
    student named them (`x is f32[64, 128]` is the label's business, not the rule's); the texts have no other braces.
    """

    def __init__(self, code: str, message: str, *, about: tuple[int | str, ...] = (), help: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.about = about
        self.help = help

    def named(self, names: Sequence[str]) -> tuple[str, str]:
        """Message and help with the operands' names put in."""
        return _named(self.message, names), _named(self.help, names)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor operand: its name in a call.

    `many` takes a list of tensors (`concat([a, b])`), and is then the only operand. An `optional` one may be left out, and stands last.
    """

    name: str
    many: bool = False
    optional: bool = False

    def __str__(self) -> str:
        return f"[{self.name}, …]" if self.many else f"{self.name}?" if self.optional else self.name


@dataclass(frozen=True, slots=True)
class OnHost:
    """The device has nothing for this operator: it runs on the host, in float32."""

    why: str


@dataclass(frozen=True, slots=True)
class Given:
    """A value that isn't computed: an input, a weight, a constant. It can be on the host and on the device.

    A `declared` one has the type that the source says, which its rule gets as the only one, and checks.
    """

    declared: bool = True


@dataclass(frozen=True, slots=True)
class Matrix(Generic[A]):
    """A product with constant weights: an FC layer, or a convolutional one.

    `obstacle` says, of the operator's attributes and its operands' shapes, why the device can't; it is empty when it can.
    """

    obstacle: Callable[[A, Shapes], str] = lambda _, __: ""


@dataclass(frozen=True, slots=True)
class Pooling:
    """Windows of an image, channel by channel: "max" or "average"."""

    function: str


@dataclass(frozen=True, slots=True)
class Table(Generic[A]):
    """A function of one value: a 256-entry table, computed at compile time in float64."""

    function: Callable[[A, Float64], Float64]


@dataclass(frozen=True, slots=True)
class Clamp(Generic[A]):
    """A clamp of real values to the bounds low…high, by the operator's attributes: of the quantised value, without another rounding."""

    bounds: Callable[[A], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A function of two values of one element: `add`, `subtract` or `multiply` of the vector unit, by the operator's attributes."""

    function: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class View:
    """Another shape of the same rows: no data moves as long as the last size stays."""


@dataclass(frozen=True, slots=True)
class Rearrangement(Generic[A]):
    """Values in other places: rows by the way they are walked or by copies, lanes through the matrix unit.

    `obstacle` says, of the operator's attributes and its operands' shapes, why the device can't; it is empty when it can.
    """

    obstacle: Callable[[A, Shapes], str]


@dataclass(frozen=True, slots=True)
class Boundary:
    """`quantize` and `dequantize`: they say how a value is represented, and move nothing.

    `into_integers` says which way: real values become integers, or integers real values.
    """

    into_integers: bool


Legalisation = OnHost | Given | Matrix[Any] | Pooling | Table[Any] | Clamp[Any] | Arithmetic | View | Rearrangement[Any] | Boundary
"""How the device computes an operator."""


@dataclass(frozen=True, slots=True)
class Ieee:
    """The reference: it moves values, or does single float32 operations (+ - * /, square root, rounding to integers, compare, select).

    `prepared` gives for the attributes a function of the operands, one argument each, with the reference's results. It is called often, so
    that what depends on the attributes alone should be done before. Of scalars it needn't make arrays.
    """

    prepared: Callable[[Any], Callable[..., Array]] | None = None


@dataclass(frozen=True, slots=True)
class Defined:
    """The function of attributes, operands and arithmetic that gives the result; with NumPy's it may replace the reference.

    `prepared` gives for the attributes, the operands' shapes and the arithmetic a function of the operands, as `Ieee.prepared` does.
    """

    function: Callable[[Any, Arrays, floating.Arithmetic], Array]
    prepared: Callable[[Any, Shapes, floating.Arithmetic], Callable[..., Array]] | None = None


@dataclass(frozen=True, slots=True)
class NoFloats:
    """A machine for floats doesn't have the operator; `why` says the reason."""

    why: str


Floats = Ieee | Defined | NoFloats
"""What an operator computes on a machine for floats.

A result must not depend on the library, the processor or the number of threads. Single IEEE 754 operations in a defined order don't: `Ieee`
says that the reference consists of nothing else. Products, sums, exponentials and the like do; `Defined` computes them with the machine's
own (`tpucc.floating`), in which rounding and order are laid down.
"""


@dataclass(frozen=True, slots=True)
class Example(Generic[A]):
    """A case that the tests run: attributes and the operands' types; `title` says what it shows (one whole tile, one ragged)."""

    title: str
    attributes: A
    operands: tuple[TensorType, ...]


class Term:
    """An operand of an expression that isn't a node: another expression, or a variable of a pattern."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Expression(Term):
    """An operator applied to operands: what a rule of a pass looks for, and what it puts in its place.

    `given` are the attributes that were given, by name. Where an expression is built, the others have their defaults; where it is looked
    for, the others may have any value.
    """

    operator: OpDef[Any]
    operands: tuple[Node | Term, ...]
    given: Mapping[str, object]

    @property
    def attributes(self) -> Attributes:
        """The attributes of the node that the expression becomes."""
        made: Attributes = self.operator.attributes(**self.given)
        return made


@dataclass(frozen=True, slots=True)
class OpDef(Generic[A]):
    """An operator.

    `attributes` is a frozen dataclass; the order of its fields is the order of the positional arguments after the operands, and its
    defaults are the call's. `infer` gives the result's type or raises `RuleError`; it sees shapes as Python integers and must not
    allocate. `reference` computes in float32 on arrays of the operands' types. `facts` are for passes. `gradient` says how a
    change of the result goes back to the operands, `floats` what a machine for floats computes, and `onnx` the ONNX nodes that compute the
    same. An operator has no cost: time belongs to layers.
    """

    name: str
    summary: str
    documentation: str
    operands: tuple[Operand, ...]
    attributes: type[A]
    infer: Callable[[A, Types], TensorType]
    reference: Callable[[A, Arrays], Array]
    legalisation: Legalisation
    facts: Facts
    gradient: Gradient
    floats: Floats
    onnx: OnnxForm
    examples: tuple[Example[A], ...]

    def __post_init__(self) -> None:
        if not (self.summary and self.documentation and self.examples):
            raise TypeError(f"operator {self.name} lacks a summary, documentation or examples")
        for wrong in _contradictions(self):
            raise TypeError(f"the facts of operator {self.name} contradict each other: {wrong}")

    def __call__(self, *operands: Node | Term, **given: object) -> Expression:
        """The operator applied to operands, with attributes by name: `conv2d(x, w, stride=2)`. A pass matches it, or builds it."""
        return Expression(self, operands, given)

    def with_attributes(self, attributes: Attributes, *operands: Node | Term) -> Expression:
        """The operator applied to operands, with all of its attributes in one value."""
        return Expression(self, operands, {name: getattr(attributes, name) for name in self.attributes.__dataclass_fields__})

    def node(
        self, name: str, operands: Sequence[str], attributes: Attributes, type: TensorType, origin: Origin, place: Side | None = None
    ) -> Node:
        """A node of this operator, by the names of its operands: for a pass that makes its graph without a rewriter."""
        return Node(name, self.name, tuple(operands), attributes, type, origin, place)

    def made(self, node: Node) -> bool:
        """Whether a node is of this operator: for a rule that is about this operator and no other."""
        return node.op == self.name

    def attributes_of(self, node: Node) -> A:
        """The attributes of a node of this operator. Raises `AssertionError` for a node of another one."""
        assert isinstance(node.attributes, self.attributes)
        return node.attributes

    @property
    def declared(self) -> bool:
        """Whether the type of a node is declared, not inferred from operands and attributes."""
        return isinstance(self.legalisation, Given) and self.legalisation.declared

    @property
    def signature(self) -> str:
        """How a call looks, with the defaults: `max_pool(x, size=2, stride=None, padding="valid")`."""
        return f"{self.name}({', '.join([*map(str, self.operands), *map(_written, fields(self.attributes))])})"

    def takes(self, count: int) -> bool:
        """Whether a node of this operator may have `count` operands."""
        if any(operand.many for operand in self.operands):
            return count > 0
        return sum(not operand.optional for operand in self.operands) <= count <= len(self.operands)


def _contradictions(operator: OpDef[Any]) -> Iterator[str]:
    """Contradictions between an operator's facts, its operands and its legalisation."""
    facts, kind = operator.facts, operator.legalisation
    if facts.elementwise != isinstance(kind, Table | Clamp | Arithmetic | Boundary):
        yield "functions of elements are tables, clamps, arithmetic and boundaries, and nothing else is element-wise"
    if isinstance(kind, View) != (facts.values is Values.VIEWED) or (isinstance(kind, Rearrangement) and facts.values not in MOVED):
        yield "views and rearrangements compute nothing"
    if (facts.values is Values.GIVEN) != (not operator.operands) or (facts.batch is None) != (not operator.operands):
        yield "without operands, and only then, values are given and have no rule for the batch"
    if facts.signs and (len(facts.signs) != len(operator.operands) or not facts.elementwise):
        yield "a sum is element-wise and has one sign an operand"
    if bool(facts.fuses_into) != isinstance(kind, Matrix | Arithmetic):
        yield "products and arithmetic take in an activation, and nothing else does"
    if isinstance(kind, Pooling) and facts.windows is None:
        yield "a pool has windows"


def _named(text: str, names: Sequence[str]) -> str:
    """Fills all holes in one go, so that a name that looks like `{1}` isn't filled itself."""
    return re.sub(r"\{(\d+)\}", lambda place: names[int(place[1])], text)


def _written(field: Field[Any]) -> str:
    if field.default is MISSING:
        return field.name
    return f"{field.name}={json.dumps(field.default) if isinstance(field.default, str) else field.default}"
