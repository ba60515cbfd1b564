"""What operators compute on a machine for floats: their references, where these are IEEE operations, and else functions that agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.gradients import UNIT, WIDE, arrays
from tpucc.floating import double
from tpucc.floating.matrix_unit import Machine
from tpucc.ops import OPS
from tpucc.ops.opdef import Array, Defined, Example, Ieee, OpDef
from tpucc.training.arithmetic import NUMPY

LARGEST = 100_000
"""Elements of the operands of examples that are tried here."""
CASES = [
    (op, example)
    for op in OPS.values()
    for example in op.examples
    if op.operands and sum(math.prod(type_.shape) for type_ in example.operands) <= LARGEST
]
PREPARED = {f"{op.name}: {example.title}": (op, example) for op, example in CASES if getattr(op.floats, "prepared", None)}
DEFINED, IEEE = (
    {f"{op.name}: {example.title}": (op, example) for op, example in CASES if isinstance(op.floats, kind)} for kind in (Defined, Ieee)
)


def drawn(op: OpDef[Any], example: Example[Any]) -> list[Array]:
    """Float32 operands at which the result is finite."""
    for bounds in (WIDE, UNIT):
        operands = list(arrays(op, example.operands, bounds, np.float32))
        with np.errstate(all="ignore"):
            if np.isfinite(op.reference(example.attributes, operands)).all():
                return operands
    raise AssertionError(f"{op.name} has no value at {example.title}")


@each(DEFINED)
def test_what_is_defined_agrees_with_the_reference(op: OpDef[Any], example: Example[Any]) -> None:
    operands = drawn(op, example)
    wanted = op.reference(example.attributes, operands)
    assert isinstance(op.floats, Defined)
    found = op.floats.function(example.attributes, operands, NUMPY)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    error = np.abs(found - wanted).max()
    assert error <= 2e-6 * np.abs(wanted).max()
    for operand in operands:
        operand.setflags(write=False)
    assert np.array_equal(op.floats.function(example.attributes, operands, NUMPY), found)


@each(PREPARED)
def test_what_is_prepared_has_the_same_bits(op: OpDef[Any], example: Example[Any]) -> None:
    operands = drawn(op, example)
    match op.floats:
        case Ieee(prepared) if prepared is not None:
            found, wanted = prepared(example.attributes)(*operands), op.reference(example.attributes, operands)
        case Defined(function, prepared) if prepared is not None:
            found = prepared(example.attributes, [x.shape for x in operands], Machine(128))(*operands)
            wanted = function(example.attributes, operands, Machine(128))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted, strict=True)


@each(DEFINED)
def test_what_is_defined_works_on_a_machine(op: OpDef[Any], example: Example[Any]) -> None:
    """Up to the rounding of a product's operands to bfloat16, which have 8 bits."""
    operands = drawn(op, example)
    assert isinstance(op.floats, Defined)
    found = op.floats.function(example.attributes, operands, Machine(128))
    wanted = op.reference(example.attributes, operands)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert np.abs(found - wanted).max() <= 2**-7 * np.abs(wanted).max()


@each(["tanh", "elu", "silu", "gelu"])
def test_functions_lose_no_digits_near_zero(name: str) -> None:
    op = OPS[name]
    x = np.geomspace(1e-30, 0.5, 200, dtype=np.float32)
    x = np.concatenate([x, -x])
    assert isinstance(op.floats, Defined)
    wanted = op.reference(op.examples[0].attributes, [x.astype(np.float64)])
    for arithmetic in (NUMPY, Machine(128)):
        found = op.floats.function(op.examples[0].attributes, [x], arithmetic)
        assert (np.abs(found - wanted) <= 1e-6 * np.abs(wanted)).all()


SINGLE = {
    *("add", "subtract", "multiply", "divide", "square", "sqrt", "negative", "absolute", "sign", "rint", "maximum", "minimum", "clip"),
    *("greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "isnan", "copysign"),
}
"""NumPy's functions of elements whose float32 results IEEE 754 fixes."""
IN_ORDER = ("__call__", "at")
"""How they may be called: element by element, or at one index after the other."""
ORDERLESS = {"maximum", "minimum"}
"""Those that may also go over an axis: no order changes the result."""


class Watched(np.ndarray[Any, Any]):
    """An array that refuses what isn't a single IEEE operation on floats, and moves."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        plain = [np.asarray(x) if isinstance(x, Watched) else x for x in inputs]
        if any(np.asarray(x).dtype.kind == "f" for x in plain):
            fixed = ufunc.__name__ in (SINGLE if method in IN_ORDER else ORDERLESS)
            assert fixed, f"{ufunc.__name__} ({method}) isn't a single IEEE operation"
        if out:
            options["out"] = tuple(np.asarray(x) for x in out)
        found = getattr(ufunc, method)(*plain, **options)
        return out[0] if out else np.asarray(found).view(Watched)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        assert function.__name__ not in ("einsum", "dot", "tensordot", "convolve", "inner"), f"{function.__name__} adds up in NumPy's order"
        return super().__array_function__(function, types, args, kwargs)


def watched(operands: Sequence[Array]) -> list[Array]:
    return [x.view(Watched) for x in operands]


FUNCTIONS = ("exp", "log", "expm1", "tanh", "sigmoid")


def refused(*_: Array) -> Array:
    raise AssertionError("a function of tpucc.floating.double is no single IEEE operation")


@each(IEEE)
def test_what_is_said_to_be_ieee_does_nothing_else(op: OpDef[Any], example: Example[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor what takes several operations in float64, where `Watched` doesn't see them."""
    operands = drawn(op, example)
    for name in FUNCTIONS:
        monkeypatch.setattr(double, name, refused)
    assert np.array_equal(op.reference(example.attributes, watched(operands)), op.reference(example.attributes, operands))


class Beside:
    """The arithmetic of NumPy on plain arrays, whose results are watched."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(NUMPY, name)

        def computed(*given: Any, **options: Any) -> Any:
            found = function(*([np.asarray(x) if isinstance(x, Watched) else x for x in given]), **options)
            return found.view(Watched) if isinstance(found, np.ndarray) else found

        return computed if callable(function) else function


@each(DEFINED)
def test_what_is_defined_takes_sums_and_functions_from_the_machine(op: OpDef[Any], example: Example[Any]) -> None:
    """NumPy's own have other bits on another processor, and a machine has others, too."""
    assert isinstance(op.floats, Defined)
    arithmetic: Any = Beside()
    operands = drawn(op, example)
    found = op.floats.function(example.attributes, watched(operands), arithmetic)
    assert np.array_equal(found, op.floats.function(example.attributes, operands, NUMPY))


@each(["sum", "linear"])
def test_an_operator_that_is_not_ieee_is_noticed(name: str) -> None:
    op = OPS[name]
    example = op.examples[-1]
    with pytest.raises(AssertionError, match=r"isn't a single IEEE operation"):
        op.reference(example.attributes, watched(drawn(op, example)))
