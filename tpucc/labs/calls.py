"""The arguments of a call as a file of data: JSON in which nothing is code, so that whoever wrote it, reading it runs nothing of theirs.

    {"list": [‥]}, {"tuple": [‥]}, {"dict": [[key, value], ‥]}    lists, tuples, dicts
    {"array": "k05VTVBZ‥"}                                        an array as .npy, in base64
    {"dtype": "<i4"}                                              the type of an array's numbers
    {"class": "tpucc.ir.types.TensorType", "fields": {‥}}         a value of tpucc's, made from its fields again
    {"builder": [[name, node], ‥], "number": 0}, {"builder": 0}   the graph that a gradient's rule adds nodes to, and the same one again
    {"empty": "list"}                                             the built-in lowering of a layer as students get it: one without lines

Numbers, strings and None stand for themselves.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tpucc.ir.dtypes import Format
from tpucc.training.passes.build import Apart

PACKAGES = ("diagnostics", "ir", "isa", "lowering", "ops", "schedule", "stages", "target")
"""Parts of tpucc whose frozen classes a file may name: making their values checks fields and does nothing else."""


def packed_call(arguments: Sequence[Any]) -> bytes:
    """The arguments of a call, for a file; of values of tpucc's only the fields, not what they have computed of these."""
    return json.dumps(packed_value(tuple(arguments))).encode()


def packed_value(value: Any) -> Any:
    """A value as JSON has it. Raises `TypeError` for one that has no such form."""
    return _packed(value, [])


def read_value(value: Any) -> Any:
    """A value that `packed_value` has written. Raises `ValueError` for what isn't one."""
    return _read(value, {})


def saved(path: str) -> tuple[Any, ...]:
    """The arguments of a call that `tpucc lab check` has written into a file. Raises `ValueError` for any other file."""
    text = Path(path).read_bytes()
    try:
        arguments = read_value(json.loads(text))
    except Exception as error:
        raise ValueError(f"{path} has no call that tpucc lab check has written: {error}") from None
    if not isinstance(arguments, tuple):
        raise ValueError(f"{path} has no call that tpucc lab check has written: it has no tuple of arguments")
    return arguments


def _packed(value: Any, builders: list[Apart]) -> Any:
    """A value as JSON has it; `builders` are those that are written already. Raises `TypeError` for a value that has no such form."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return value.item()
        case np.ndarray():
            np.save(data := io.BytesIO(), value, allow_pickle=False)
            return {"array": base64.b64encode(data.getvalue()).decode()}
        case np.dtype():
            return {"dtype": value.str}
        case list() | tuple():
            return {"list" if isinstance(value, list) else "tuple": [_packed(entry, builders) for entry in value]}
        case dict():
            return {"dict": [[_packed(key, builders), _packed(entry, builders)] for key, entry in value.items()]}
        case Apart() if value in builders:
            return {"builder": builders.index(value)}
        case Apart():
            builders.append(value)
            return {"builder": [[name, _packed(node, builders)] for name, node in value.nodes.items()], "number": len(builders) - 1}
    if value is list:
        return {"empty": "list"}
    held, defaults = {name: getattr(value, name) for name in _fields(type(value))}, _defaults(type(value))
    return {
        "class": f"{type(value).__module__}.{type(value).__qualname__}",
        "fields": {name: _packed(entry, builders) for name, entry in held.items() if not _is_same(entry, defaults.get(name, MISSING))},
    }


def _read(value: Any, builders: dict[int, Apart]) -> Any:
    """A value that `_packed` has written."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case {"array": text}:
            return np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)
        case {"dtype": text}:
            return np.dtype(text)
        case {"empty": "list"}:
            return list
    return _composed(value, builders)


def _composed(value: Any, builders: dict[int, Apart]) -> Any:
    """A value that is made of others."""
    match value:
        case {"list": entries}:
            return [_read(entry, builders) for entry in entries]
        case {"tuple": entries}:
            return tuple(_read(entry, builders) for entry in entries)
        case {"dict": entries}:
            return {_read(key, builders): _read(entry, builders) for key, entry in entries}
        case {"builder": nodes, "number": number}:
            builders[number] = builder = Apart()
            builder.nodes.update({name: _read(node, builders) for name, node in nodes})
            return builder
        case {"builder": number}:
            return builders[number]
        case {"class": name, "fields": given}:
            return _class(name)(**{field: _read(entry, builders) for field, entry in given.items()})
    raise ValueError("a value of no known form")


def _class(name: str) -> type:
    """The frozen class of tpucc's that a file names."""
    module, _, own = name.rpartition(".")
    if module.split(".")[0] != "tpucc" or module.split(".")[1] not in PACKAGES:
        raise ValueError(f"{name} is no class of tpucc's values")
    found = getattr(import_module(module), own)
    if not isinstance(found, type) or found.__module__ != module:
        raise ValueError(f"{name} is no class of tpucc's values")
    _fields(found)
    return found


def _fields(kind: type) -> Sequence[str]:
    """The names of a frozen class's fields. Raises `TypeError` for another class."""
    if issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen:
        return kind.__struct_fields__
    if is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return [entry.name for entry in fields(kind) if entry.init]
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} is no class of frozen values")


def _is_same(value: Any, default: Any) -> bool:
    """Whether a value is a default. A format of numbers that has come from another process is one of equal fields."""
    return value is default or (isinstance(value, Format) and value == default)


def _defaults(kind: type) -> Mapping[str, Any]:
    """The defaults of a class's fields: a value that is one isn't written, as the machine of a listing."""
    return {field.name: field.default for field in fields(kind)} if is_dataclass(kind) else {}
