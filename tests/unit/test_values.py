"""The decorator of value classes: each class is also made by the standard one, and both must do the same."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass as standard
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pytest

import tpucc
from tests.support.cases import each
from tpucc.values import dataclass

T = TypeVar("T")
Decorator = Callable[..., Any]
NAN = float("nan")


def _plain(made: Decorator) -> Any:
    @made(frozen=True)
    class Value:
        """A value."""

        KIND: ClassVar[str] = "kind"
        a: int
        b: str = "b"

        @property
        def both(self) -> str:
            return f"{self.a}{self.b}"

    return Value


def _slots(made: Decorator) -> Any:
    @made(frozen=True, slots=True)
    class Value(Generic[T]):
        """A value."""

        a: T
        b: tuple[int, ...] = ()
        function: Callable[[int], int] = abs

    return Value


def _one(made: Decorator) -> Any:
    @made(frozen=True, slots=True)
    class Value:
        """A value."""

        a: object

    return Value


def _empty(made: Decorator) -> Any:
    @made(frozen=True)
    class Value:
        """A value."""

    return Value


def _fields(made: Decorator) -> Any:
    @made(frozen=True)
    class Value:
        """A value."""

        a: int = field(compare=False)
        b: int = field(default=2, repr=False)
        c: list[int] = field(default_factory=list)
        factory: dict[str, int] = field(default_factory=dict, init=False, compare=False)
        object: int = field(default=5, init=False)

    return Value


def _named(made: Decorator) -> Any:
    @made(frozen=True, slots=True, kw_only=True)
    class Value:
        """A value."""

        a: int
        b: int = 2

    return Value


def _checked(made: Decorator) -> Any:
    @made(frozen=True)
    class Value:
        """A value."""

        a: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", abs(self.a))

    return Value


def _own(made: Decorator) -> Any:
    @made(frozen=True)
    class Value:
        """A value."""

        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.a % 10 == other.a % 10

        def __repr__(self) -> str:
            return "own"

    return Value


def _identity(made: Decorator) -> Any:
    @made(frozen=True, eq=False, repr=False)
    class Value:
        """A value."""

        a: int

        def __repr__(self) -> str:
            return "Value"

    return Value


def _inheriting(made: Decorator) -> Any:
    @made(frozen=True)
    class Value(_plain(made)):
        """A value."""

        c: int = 3

    return Value


def _without_text(made: Decorator) -> Any:
    @made(frozen=True)
    class Value:
        a: int

    return Value


def _changing(made: Decorator) -> Any:
    @made
    class Value:
        """A value."""

        a: int

    return Value


KINDS = (_plain, _slots, _one, _empty, _fields, _named, _checked, _own, _identity, _inheriting, _without_text, _changing)
GIVEN: tuple[tuple[tuple[object, ...], dict[str, object]], ...] = (
    ((), {}),
    ((1,), {}),
    ((-11,), {}),
    (([],), {}),
    ((1, "c"), {}),
    ((), {"a": 1, "b": 3}),
    ((1,), {"b": 3, "c": [4]}),
    ((1,), {"wrong": 2}),
    ((1, 2, 3, 4, 5, 6), {}),
)
ACTS: tuple[Callable[[Any, Any], object], ...] = (
    lambda value, _: repr(value),
    lambda value, _: value == value,
    lambda value, other: value == other,
    lambda value, other: value == (1,),
    lambda value, _: isinstance(hash(value), int) and (hash(value) == hash(copy.copy(value))),
    lambda value, _: setattr(value, "a", 2),
    lambda value, _: setattr(value, "unknown", 2) if hasattr(value, "__dict__") else None,  # the standard one fails in slots
    lambda value, _: delattr(value, "a"),
    lambda value, _: dataclasses.asdict(value),
    lambda value, _: dataclasses.replace(value, a=7),
    lambda value, _: copy.deepcopy(value),
    lambda value, _: [(f.name, f.default, f.init, f.kw_only) for f in dataclasses.fields(value)],
    lambda value, _: type(value).__match_args__,
    lambda value, _: str(inspect.signature(type(value))),
    lambda value, _: type(value).__doc__,
)


def _outcome(act: Callable[..., object], *arguments: Any) -> str:
    """What comes of a call, as text without the name of the function that made the class."""
    try:
        found = act(*arguments)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    return re.sub(r"0x\w+|_\w+\.<locals>\.", "", f"{found!r}" if not isinstance(found, str) else found)


@each({f"{kind.__name__} {given}": (kind, *given) for kind in KINDS for given in GIVEN})
def test_a_class_does_what_the_standard_one_does(
    kind: Callable[[Decorator], Any], arguments: tuple[object, ...], named: dict[str, object]
) -> None:
    ours, theirs = kind(dataclass), kind(standard)
    made = _outcome(lambda: ours(*arguments, **named))
    assert made == _outcome(lambda: theirs(*arguments, **named))
    if "Error" in made:
        return
    for act in ACTS:
        values, expected = ([cls(*arguments, **named) for _ in range(2)] for cls in (ours, theirs))
        assert _outcome(act, *values) == _outcome(act, *expected)


@each([_plain, _slots, _one])
def test_a_value_with_a_nan_is_equal_to_itself_in_each_version_of_python(kind: Callable[[Decorator], Any]) -> None:
    """The standard class compares field by field since Python 3.13, and isn't."""
    made = kind(dataclass)
    value = made(NAN)
    assert value == value
    assert value == made(NAN)
    assert hash(value) == hash(made(NAN))
    assert value != made(float("nan"))


@dataclass(frozen=True, slots=True)
class Kept:
    """A value in slots."""

    a: int
    b: tuple[int, ...] = (1, 2)


@standard(frozen=True, slots=True)
class Derived(Kept):
    """A class of the user's."""

    c: str = "c"


@dataclass(frozen=True)
class Loose:
    """A value with a dictionary."""

    a: Kept


class Named(Loose):
    """A class that isn't decorated: it may have attributes of its own."""


@each([Kept(3), Derived(4, c="d"), Loose(Kept(5)), Named(Kept(6))])
def test_values_are_pickled_and_copied(value: Any) -> None:
    for again in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert again == value
        assert again is not value
        assert type(again) is type(value)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
            again.a = 4


def test_a_class_that_inherits() -> None:
    value: Any = Named(Kept(1))
    value.more = 2
    assert value.more == 2
    del value.more
    assert not hasattr(value, "more")
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        standard(type("Changing", (Kept,), {}))


def test_all_of_tpucc_uses_it() -> None:
    own = Path(tpucc.__file__).parent
    files = [file for file in own.rglob("*.py") if "material" not in file.parts and file != own / "values.py"]
    asked = re.compile(r"^\s*from dataclasses import .*\bdataclass\b", re.MULTILINE)
    assert [str(file.relative_to(own)) for file in files if asked.search(file.read_text("utf-8"))] == []
