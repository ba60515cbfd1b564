"""Values of attributes as text: `3`, `0.5`, `"key"`, `true`, `none`, `(1, 2)`, `[0.0, 6.0]`, `f32[2]{1.0, 2.0}`, `requantise(zero=3)`.

Arrays of up to 16 elements stand in the line; drawn ones by their recipe, `f32[2000, 2000] random(0, "w1")`; the others in a section of
their own at the end of the text, `f32[64, 256] data d0`, which has their bytes or only their digest (`tpucc.ir.digests`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tpucc.diagnostics import printable
from tpucc.ir.attributes import Record, Value, is_record, non_default, record_name
from tpucc.ir.codec import decode, encode, quote
from tpucc.ir.constants import Constant, Random, random_array
from tpucc.ir.digests import Known, found, header
from tpucc.ir.dtypes import FORMATS
from tpucc.ir.tokens import Cursor, Token
from tpucc.ir.types import Range, TensorType, as_float32

INLINE = 16
MAX_DEPTH = 16
MAX_ELEMENTS = 2**28
"""Elements of all drawn constants of one text: 1 GiB of float32, ten times what the TPU paper's largest application has in weights."""
ARRAY = "E0735"
DATA = "E0736"
_WORDS: Mapping[str, Value] = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}


class DataWriter:
    """Gives arrays names and writes each once, however many nodes have it: `with_data` or by its digest."""

    def __init__(self, with_data: bool = True) -> None:
        self._names: dict[Constant, str] = {}
        self._with_data = with_data

    def name(self, array: Constant) -> str:
        return self._names.setdefault(array, f"d{len(self._names)}")

    def sections(self) -> list[str]:
        parts = [(name, array.data.tobytes()) for array, name in self._names.items()]
        return [f"data {name}\n{encode(data)}" if self._with_data else header(name, data) for name, data in parts]


@dataclass(frozen=True, slots=True)
class Section:
    """A data section: base64, or without data the length and digest of what is meant."""

    text: str
    size: int = 0
    digest: str = ""


class DataReader:
    """The data sections of a text, decoded when first used, and the budget for drawing."""

    def __init__(self, sections: Mapping[str, Section], known: Known | None = None, most: int = MAX_ELEMENTS) -> None:
        self._sections = sections
        self._known = known
        self._arrays: dict[tuple[str, TensorType], Constant] = {}
        self._drawn: dict[tuple[TensorType, Random], Constant] = {}
        self._most = self._budget = most

    def read(self, cursor: Cursor, type_: TensorType, name: str, token: Token) -> Constant:
        """The array `name`; its bytes must be as many as the type says. Raises `LineError`."""
        found = self._arrays.get((name, type_))
        if found is not None:
            return found
        if name not in self._sections:
            raise cursor.error(f"the text has no section data {name}", token, DATA)
        data = self._data(cursor, name, token)
        if len(data) != type_.size * type_.numpy.itemsize:
            raise cursor.error(f"data {name} has {len(data):,} bytes, but {type_} has {type_.size * type_.numpy.itemsize:,}", token, DATA)
        array = Constant(np.frombuffer(data, type_.numpy).reshape(type_.shape))
        return self._arrays.setdefault((name, type_), array)

    def _data(self, cursor: Cursor, name: str, token: Token) -> bytes:
        section = self._sections[name]
        if section.digest:
            return found(f"the constant of {printable(cursor.first.text)}", section.digest, section.size, self._known, token.span)
        try:
            return decode(section.text)
        except ValueError as error:
            raise cursor.error(f"data {name} is not base64: {error}", token, DATA) from None

    def draw(self, cursor: Cursor, type_: TensorType, recipe: Random, token: Token) -> Constant:
        """Draws a constant. Raises `LineError` when all that the text draws is too much."""
        if (type_, recipe) not in self._drawn:
            if type_.size > self._budget:
                raise cursor.error(f"the drawn constants of a text have at most {self._most:,} elements in all", token, ARRAY)
            self._budget -= type_.size
            self._drawn[type_, recipe] = random_array(type_.shape, recipe)
        return self._drawn[type_, recipe]


def print_value(value: Value, data: DataWriter, depth: int = 0) -> str:
    """A value as text. Raises `TypeError` for what has no text form, `verify_graph` says so first."""
    match value:
        case None | bool():
            return "none" if value is None else "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return repr(float(value))
        case str():
            return quote(value)
        case Range():
            return str(value)
        case Constant():
            return _print_array(value, data)
        case tuple() if depth < MAX_DEPTH:
            items = ", ".join(print_value(item, data, depth + 1) for item in value)
            return f"({items},)" if len(value) == 1 else f"({items})"
        case _ if is_record(value) and depth < MAX_DEPTH:
            parts = ", ".join(f"{name}={print_value(part, data, depth + 1)}" for name, part in non_default(value))
            return f"{record_name(type(value))}({parts})"
        case _:
            raise TypeError(f"a value of type {type(value).__name__} has no text form")


def parse_value(cursor: Cursor, data: DataReader, depth: int = 0) -> Value:
    """Reads one value. Raises `LineError`."""
    token = cursor.take()
    if token.kind == "number":
        return cursor.number_of(token)
    if token.kind == "string":
        return cursor.string_of(token)
    if token.text in _WORDS:
        return _WORDS[token.text]
    if token.text in FORMATS:
        return _parse_array(cursor, data, token)
    if token.text == "(":
        return _parse_tuple(cursor, data, token, depth + 1)
    if token.text == "[":
        return parse_range(cursor)
    if token.kind == "name" and cursor.accept("("):
        return _parse_record(cursor, data, token, depth + 1)
    raise cursor.error(f"expected a value, found {token}", token)


def parse_range(cursor: Cursor) -> Range:
    """Reads `0.0, 8.0]`; the bracket before is read already. Raises `LineError`."""
    start = cursor.next
    low = parse_float(cursor, "the lower end of a range")
    cursor.expect(",", "between the ends of a range")
    high = parse_float(cursor, "the upper end of a range")
    cursor.expect("]", "after a range")
    if not low <= high or high == float("inf") or low == -float("inf"):
        raise cursor.error(f"the range [{low!r}, {high!r}] is empty or infinite", start)
    return Range(low, high)


def parse_float(cursor: Cursor, what: str) -> float:
    token = cursor.take()
    if token.text in ("inf", "nan"):
        return float(token.text)
    if token.kind != "number":
        raise cursor.error(f"expected {what}, found {token}", token)
    return float(cursor.number_of(token))


def parse_shape(cursor: Cursor) -> tuple[int, ...]:
    """Reads `[2, 3]`. Raises `LineError`."""
    cursor.expect("[", "and sizes after the type of the elements")
    return tuple([cursor.integer("a size") for _ in cursor.until("]", "a size")])


def _parse_tuple(cursor: Cursor, data: DataReader, opening: Token, depth: int) -> Value:
    if depth > MAX_DEPTH:
        raise cursor.error(f"tuples are nested more than {MAX_DEPTH} deep", opening)
    items: list[Value] = []
    while not cursor.accept(")"):
        items.append(parse_value(cursor, data, depth))
        if cursor.next.text != ")":
            cursor.expect(",", "or ) after a value")
    return tuple(items)


def _parse_record(cursor: Cursor, data: DataReader, name: Token, depth: int) -> Record:
    if depth > MAX_DEPTH:
        raise cursor.error(f"values are nested more than {MAX_DEPTH} deep", name)
    parts: dict[str, Value] = {}
    for _ in cursor.until(")", f"a part of {name}"):
        key, token = cursor.name(f"the name of a part of {name}")
        cursor.expect("=", "after the name of a part")
        if key in parts:
            raise cursor.error(f"{printable(key)} is given twice", token)
        parts[key] = parse_value(cursor, data, depth)
    return Record(name.text, parts)


def _print_array(array: Constant, data: DataWriter) -> str:
    type_ = TensorType(array.dtype, array.shape)
    if array.drawn is not None:
        return f"{type_} random({array.drawn.seed}, {quote(array.drawn.key)})"
    if type_.size <= INLINE:
        words = [str(element) for element in array.data.flat]
        if _elements(words, type_).tobytes() == array.data.tobytes():
            return f"{type_}{{{', '.join(words)}}}"
    return f"{type_} data {data.name(array)}"


def _elements(words: list[str], type_: TensorType) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """An array from its elements as text; integers first as Python's, so that none is rounded."""
    values = [float(word) if type_.dtype == "f32" else int(word) for word in words]
    with np.errstate(over="ignore"):
        return np.array(values, type_.numpy).reshape(type_.shape)


def _parse_array(cursor: Cursor, data: DataReader, dtype: Token) -> Constant:
    type_ = TensorType(dtype.text, parse_shape(cursor))
    place = cursor.next
    if cursor.accept("{"):
        return _parse_elements(cursor, type_, place)
    if cursor.accept("data"):
        name, token = cursor.name("the name of a data section")
        return data.read(cursor, type_, name, token)
    if cursor.accept("random") and type_.dtype == "f32":
        return data.draw(cursor, type_, _parse_recipe(cursor), place)
    raise cursor.error(f"expected {{elements}}, data or random after {type_}, found {place}", place, ARRAY)


def _parse_recipe(cursor: Cursor) -> Random:
    cursor.expect("(", "after random")
    seed = cursor.integer("a seed")
    cursor.expect(",", "after the seed")
    token = cursor.take()
    if token.kind != "string":
        raise cursor.error(f"expected the key that the constant is drawn for, found {token}", token)
    cursor.expect(")", "after the key")
    return Random(seed, cursor.string_of(token))


def _parse_elements(cursor: Cursor, type_: TensorType, opening: Token) -> Constant:
    words = [_element(cursor, type_) for _ in cursor.until("}", "an element")]
    if len(words) != type_.size:
        raise cursor.error(f"{type_} has {type_.size:,} elements, found {len(words):,}", opening, ARRAY)
    return Constant(_elements(words, type_))


def _element(cursor: Cursor, type_: TensorType) -> str:
    token = cursor.next
    value = parse_float(cursor, "an element") if type_.dtype == "f32" else cursor.integer("an integer", -(2**31))
    if not (_fits_float32(value) if isinstance(value, float) else np.iinfo(type_.numpy).min <= value <= np.iinfo(type_.numpy).max):
        raise cursor.error(f"{value} is no {type_.dtype}", token, ARRAY)
    return repr(value)


def _fits_float32(value: float) -> bool:
    """Whether a number doesn't overflow as float32; infinity and NaN are meant."""
    return not math.isfinite(value) or math.isfinite(as_float32(value))
