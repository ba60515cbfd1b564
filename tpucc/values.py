"""`dataclass`: the standard library's decorator, by which frozen classes are made several times sooner.

The standard one writes the text of up to seven methods for each class and compiles it: a quarter of the time of `tpucc check`. Here only
`__init__` is compiled, and the other methods are functions that know the names of the fields. The classes are dataclasses and behave as
the standard ones do: `fields`, `replace`, `asdict` and pickle take their values (docs/decisions/0044).
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

Methods = dict[str, Callable[..., Any]]

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # for type checkers it is the standard one
else:

    def dataclass(cls=None, /, *, frozen=False, order=False, **options):
        """Takes `eq`, `repr`, `slots` and `kw_only` too. The standard one makes all classes that change, are ordered or inherit fields."""
        if cls is None:
            return partial(dataclass, frozen=frozen, order=order, **options)
        if not frozen or order or dataclasses.is_dataclass(cls) or not cls.__doc__:  # it writes a docstring where there is none
            return dataclasses.dataclass(frozen=frozen, order=order, **options)(cls)
        return _frozen(cls, **options)


def _frozen(cls: type, *, eq: bool = True, repr: bool = True, slots: bool = False, kw_only: bool = False) -> type:
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    made.__dataclass_params__.frozen = True  # frozen classes may inherit from it, and only these
    parts = fields(made)
    methods: Methods = {"__init__": _init(made, parts)} | _refusals(made, [field.name for field in parts])
    methods |= {"__repr__": _repr} if repr else {}
    methods |= _comparisons([field.name for field in parts if field.compare]) if eq else {}
    methods |= {"__getstate__": _state, "__setstate__": _set_state} if slots else {}
    for name, method in methods.items():
        if vars(made).get(name) is None:  # __hash__ is None where the class has an __eq__ of its own
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


class _Factory:
    """The default of a parameter whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


def _init(cls: type, parts: tuple[Field[Any], ...]) -> Callable[..., Any]:
    """`__init__(self, a, b=…, *, c)`, which sets the fields and calls `__post_init__` where there is one."""
    known: dict[str, object] = {"__set__": object.__setattr__, "__factory__": _Factory()}
    positional, named, lines = ["self"], ["*"], []
    for field in parts:
        parameter, value = _parameter(field, known)
        if field.init:
            (named if field.kw_only else positional).append(parameter)
        lines.append(f"{_setting(cls, field.name, known)} {value})")
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else [] if lines else ["pass"]
    parameters = ", ".join(positional + (named if len(named) > 1 else []))
    text = f"def make({', '.join(known)}):\n def __init__({parameters}):\n  " + "\n  ".join(lines) + "\n return __init__"
    made: dict[str, Any] = {}
    module = sys.modules.get(cls.__module__)  # there is none of a file of the user's, which isn't imported
    exec(text, {} if module is None else vars(module), made)
    init: Callable[..., Any] = made["make"](**known)
    init.__qualname__ = f"{cls.__qualname__}.__init__"  # it stands in the messages about wrong arguments
    init.__annotations__ = {field.name: field.type for field in parts if field.init} | {"return": None}
    return init


def _setting(cls: type, name: str, known: dict[str, object]) -> str:
    """How the text that sets a field begins. The slot itself does so in half the time of `object.__setattr__`, which looks for it."""
    slot = vars(cls).get(name)
    if not isinstance(slot, MemberDescriptorType):
        return f"__set__(self, {name!r},"
    known[f"__set_{name}__"] = slot.__set__
    return f"__set_{name}__(self,"


def _parameter(field: Field[Any], known: dict[str, object]) -> tuple[str, str]:
    """A field as a parameter, and the value that it gets, as text; what the text names is added to `known`."""
    name, given = field.name, f"__default_{field.name}__"
    if field.default_factory is not MISSING:
        known[given] = field.default_factory
        return f"{name}=__factory__", f"{given}() if {name} is __factory__ else {name}" if field.init else f"{given}()"
    if field.default is not MISSING:
        known[given] = field.default
        return f"{name}={given}", name if field.init else given
    return name, name


def _refusals(cls: Any, names: list[str]) -> Methods:
    """A value is never changed; a class that inherits from `cls` may have more attributes, which are."""

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _comparisons(names: list[str]) -> Methods:
    """Values of one class are equal whose fields are: as tuples, in which a value is equal to itself, NaN as well. The standard class
    compares field by field since Python 3.13, so that a value with a NaN isn't equal to itself there."""
    first: Any = attrgetter(*names) if names else lambda value: ()
    key: Callable[[object], tuple[object, ...]] = first if len(names) != 1 else lambda value: (first(value),)

    def __eq__(self: object, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:
        return hash(key(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join([f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr])
    return f"{self.__class__.__qualname__}({shown})"


def _state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    """Python itself would set what is in slots as an assignment does, which is refused."""
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
