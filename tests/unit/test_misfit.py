"""What a file's values lack is said in words, not in those of the library that reads it."""

from __future__ import annotations

import msgspec
import pytest

from tpucc.diagnostics import misfit


class Part(msgspec.Struct, forbid_unknown_fields=True):
    size: int
    name: str | None = None
    rate: float = 1.0
    shape: tuple[int, int] = (1, 1)


class Whole(msgspec.Struct):
    parts: list[Part]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"size": "256"}, "size must be an integer, not a string"),
        ({"size": 2.5}, "size must be an integer, not a number"),
        ({"size": 1, "name": 3}, "name must be a string or nothing, not an integer"),
        ({"size": 1, "rate": True}, "rate must be a number, not true or false"),
        ({"size": 1, "shape": [1]}, "shape must be a list of length 2, got 1"),
        ({"rate": 1.0}, "size is missing"),
        ({"size": 1, "sise": 2}, "there is no sise"),
        ([], "it must be a table, not a list"),
    ],
)
def test_a_value_that_does_not_fit(value: object, words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, Part, strict=True)
    assert misfit(caught.value) == words


def test_the_place_of_a_value_inside_others() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"parts": [{"rate": 2.0}]}, Whole)
    assert misfit(caught.value) == "size is missing in parts[0]"
