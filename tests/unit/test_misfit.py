"""What a file's values lack is said in words, not in those of the library that reads it."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from tests.support.cases import each
from tpucc.diagnostics import misfit


class Part(msgspec.Struct, forbid_unknown_fields=True):
    size: int
    name: str | None = None
    rate: float = 1.0
    shape: tuple[int, int] = (1, 1)
    unit: Literal["metre", "mile"] = "metre"
    inner: Part | None = None

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("parts below 0")


class Whole(msgspec.Struct):
    parts: list[Part]


@each(
    [
        ({"size": "256"}, "size must be an integer, not a string"),
        ({"size": 2.5}, "size must be an integer, not a number"),
        ({"size": 1, "name": 3}, "name must be a string or nothing, not an integer"),
        ({"size": 1, "rate": True}, "rate must be a number, not true or false"),
        ({"size": 1, "shape": [1]}, "shape must be a list of length 2, got 1"),
        ({"rate": 1.0}, "size is missing"),
        ({"size": 1, "sise": 2}, "it has no field sise"),
        ([], "it must be a table, not a list"),
    ]
)
def test_a_value_that_does_not_fit(value: object, words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, Part, strict=True)
    assert misfit(caught.value) == words


@each(
    [
        (b"", "it ends too early"),
        (b'{"size":', "it ends too early"),
        (b"{]", "it is no JSON from byte 1 on"),
        (b'{"size":1} x', "it is no JSON from byte 12 on"),
        (b'{"size":1e999}', "size is too large a number"),
        (b'{"size":' + b"9" * 5000 + b"}", "size is too large a number"),
        (b'{"size":1,"name":"\xff"}', "it has text that is not UTF-8"),
        (b'{"size":1,"unit":"feet"}', "unit can't be feet"),
        (b'{"size":1,"shape":[1,2,3]}', "shape must be a list of length 2"),
        (b'{"size":-1}', "parts below 0"),
        (b'{"size":1,"inner":' + b'{"size":1,"inner":' * 200_000, "it is nested too deep"),
    ]
)
def test_json_that_does_not_fit(data: bytes, words: str) -> None:
    with pytest.raises((msgspec.MsgspecError, ValueError, RecursionError)) as caught:
        msgspec.json.decode(data, type=Part)
    assert misfit(caught.value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(3j, "it holds a value of Python's type complex"), ("\ud800", "it has text that is not UTF-8")],
)
def test_values_that_cannot_be_written(value: object, words: str) -> None:
    with pytest.raises((TypeError, UnicodeError)) as caught:
        msgspec.json.encode(value)
    assert misfit(caught.value) == words


def test_the_place_of_a_value_inside_others() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"parts": [{"rate": 2.0}]}, Whole)
    assert misfit(caught.value) == "size is missing in parts[0]"
