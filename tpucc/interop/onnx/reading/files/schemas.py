"""The nodes of a file beside ONNX's operators, as the package onnx knows them: their operands, attributes and types of elements.

Types are the file's: what tpucc holds as float32 in the place of booleans and integers is no matter here. A type that isn't known, as after
an operator of another domain, is any. bfloat16 counts as float32.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tpucc.diagnostics import ProgramError, did_you_mean, listed
from tpucc.interop.onnx.reading.files.model import OPSETS, OnnxGraph, OnnxNode, type_name
from tpucc.interop.onnx.reading.files.package import onnx_package
from tpucc.interop.onnx.reading.files.problems import CHECKER, malformed, named
from tpucc.interop.onnx.reading.files.tensors import BFLOAT16, FLOAT, INT64, TYPES

Types = MutableMapping[str, int]
"""ONNX's numbers of the types of values, by their names; those that aren't known are missing."""
MAX_CHECKED = 2**22
"""Bytes of a node that the package onnx is given: it takes a copy."""
_SAID = {"float": "float32", "double": "float64"}
HELP: Mapping[str, str] = {
    "ai.onnx.ml.ZipMap": 'skl2onnx makes maps of float32 if it is given a row of float32: to_onnx(model, x[:1].astype("float32"))',
}
"""What to do about wrong types of an operator, where more is known than that they are wrong."""


@cache
def schema_of(op: str, domain: str, version: int) -> Any:
    """What the package says of an operator in a version of its domain; None where it knows none. Of one that the version has no more it is
    the last one that there was."""
    defs = onnx_package("onnx.defs")
    try:
        found = defs.get_schema(op, version, domain)
        return defs.get_schema(op, found.since_version - 1, domain) if found.deprecated else found
    except defs.SchemaError:
        return None


@cache
def operators_of_onnx() -> frozenset[str]:
    """The names of all operators of ONNX's own domain."""
    return frozenset(schema.name for schema in onnx_package("onnx.defs").get_all_schemas_with_history() if not schema.domain)


def _graphs(node: OnnxNode) -> Iterator[tuple[str, OnnxGraph]]:
    yield from ((name, value) for name, value in node.attributes.items() if isinstance(value, OnnxGraph))


@cache
def _versions(op: str, domain: str) -> tuple[int, ...]:
    """The versions in which an operator has changed, as far as they are read, the newest first."""
    schemas = onnx_package("onnx.defs").get_all_schemas_with_history()
    found = {each.since_version for each in schemas if (each.name, each.domain) == (op, domain) and not each.deprecated}
    oldest = max((version for version in found if version <= OPSETS.start), default=0) if not domain else 0
    return tuple(sorted((version for version in found if version >= oldest), reverse=True))


def accepting_version(node: OnnxNode, version: int) -> int:
    """The version of the domain in which the operands and attributes of a node are those of its operator: that of the file, or the newest
    one. Raises `ProgramError` E1001 where there is none."""
    checker = onnx_package("onnx.checker")
    context = checker.C.CheckerContext()
    context.ir_version, says = onnx_package().IR_VERSION, ""
    for tried in (version, *_versions(node.op, node.domain)):
        context.opset_imports = {node.domain: tried}
        try:
            checker.check_node(node.proto, context)
        except checker.ValidationError as error:
            says = says or str(error).split("\n")[0]
        else:
            return tried
    raise _refused(node, says)


def require_operators(graph: OnnxGraph, opsets: Mapping[str, int]) -> None:
    """Raises `ProgramError` E1001 for a node of the graph, or of graphs inside it, that isn't what its operator is."""
    for node in graph.nodes:
        if not node.op:
            raise malformed(f"{node.title or 'a node'} has no operator", CHECKER)
        is_whole = not any(_graphs(node)) and node.proto.ByteSize() <= MAX_CHECKED
        if is_whole and schema_of(node.op, node.domain, opsets[node.domain]) is not None:
            accepting_version(node, opsets[node.domain])
        for _, inner in _graphs(node):  # the package doesn't know what is outside of them
            require_operators(inner, opsets)


def _refused(node: OnnxNode, says: str) -> ProgramError:
    """What the package says of a node, as an error of the file."""
    known = schema_of(node.op, node.domain, OPSETS.stop - 1).attributes
    wrong = next((name for name in node.attributes if name not in known and not name.startswith("__")), None)
    if wrong is not None and says.startswith("Unrecognized attribute"):
        message = f"{node.title} ({named(node.op)}): ONNX has no attribute {named(wrong)} of it"
        return malformed(message, did_you_mean(wrong, known) or node.checker)
    return malformed(f"{node.title} ({named(node.op)}): onnx.checker says: {named(says)}", node.checker)


def require_types(graph: OnnxGraph, opsets: Mapping[str, int], outside: ChainMap[str, int] | None = None) -> Types:
    """The types of the values of a graph whose nodes have the operands of their operators.

    Raises `ProgramError` E1001 for a node with an operand of a type that its operator hasn't, or with operands of several types where
    it has one for all, and for a result of another type than the file says.
    """
    types = ChainMap[str, int]() if outside is None else outside
    types.update((value.name, number) for value in graph.inputs if (number := _known(value.type)))
    types.update((name, _type_of(array)) for name, array in graph.constants.items())
    for node in graph.nodes:
        made = _made(node, opsets, types)
        types.update((name, number) for name, number in zip(node.outputs, made, strict=False) if name and number)
    for name, said in (*graph.declared.items(), *((value.name, value.type) for value in graph.outputs)):
        wanted = FLOAT if said == BFLOAT16 else said
        if said > 0 and (found := types.get(name, 0)) and found != wanted:
            raise malformed(f"the file says that {named(name)} is {type_name(said)}, and it is {type_name(found)}", CHECKER)
    return types


def _known(number: int) -> int:
    """The number of a type that is read; 0 for another one."""
    return FLOAT if number == BFLOAT16 else number if number in TYPES else 0


def _type_of(array: object) -> int:
    """The number of an array's type; 0 for what is no array."""
    return next((number for number, type_ in TYPES.items() if isinstance(array, np.ndarray) and type_ == array.dtype), 0)


def _made(node: OnnxNode, opsets: Mapping[str, int], types: ChainMap[str, int]) -> Sequence[int]:
    """The types of a node's results, 0 for those that aren't known."""
    inner = {name: require_types(value, opsets, types.new_child()) for name, value in _graphs(node)}
    if (schema := schema_of(node.op, node.domain, OPSETS.stop - 1 if not node.domain else opsets[node.domain])) is None:
        return ()
    bound = _bound(node, schema, types)
    if node.kind == "If":
        return _of_branches(node, inner)
    if node.kind == "Loop":
        return [inner["body"].get(value.name, 0) for value in node.attributes["body"].outputs[1:]]
    results = [schema.outputs[min(place, len(schema.outputs) - 1)] for place in range(len(node.outputs))]
    return [bound.get(result.type_str, (0, 0))[1] or _only(result.types) or _said(node) for result in results]


def _bound(node: OnnxNode, schema: Any, types: Types) -> Mapping[str, tuple[int, int]]:
    """By the letter of a type the first operand that has it, and its type."""
    bound: dict[str, tuple[int, int]] = {}
    for index, name in enumerate(node.inputs[: None if schema.inputs else 0]):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        if not (number := types.get(name, 0)):
            continue
        allowed = {known for text in formal.types if (known := _known(_number(text)))}
        if number not in allowed:
            raise _wrong(node, f"operand {index + 1} is {type_name(number)}, and ONNX has {_in_words(allowed)} there")
        if formal.is_homogeneous and formal.type_str not in formal.types:
            first, other = bound.setdefault(formal.type_str, (index, number))
            if other != number:
                both = f"operands {first + 1} and {index + 1} are {type_name(other)} and {type_name(number)}"
                raise _wrong(node, f"{both}, and ONNX has one type for both")
    return bound


@cache
def _number(text: str) -> int:
    """The number of a type as schemas write it: `tensor(float)`; 0 for another text."""
    name = text.removeprefix("tensor(").removesuffix(")")
    names = {"bool": "bool", "bfloat16": "bfloat16"} | _SAID
    if name == "bfloat16":
        return BFLOAT16
    return next((number for number, type_ in TYPES.items() if type_.name == names.get(name, name) and number != BFLOAT16), 0)


FLOAT_TYPES = frozenset(number for number, type_ in TYPES.items() if type_.kind == "f")
INTEGER_TYPES = frozenset(number for number, type_ in TYPES.items() if type_.kind in "iu" and number != BFLOAT16)


def _only(texts: Collection[str]) -> int:
    """The number of the one type that a schema has for a value; 0 where there are several."""
    return _number(next(iter(texts))) if len(texts) == 1 else 0


def _in_words(allowed: set[int]) -> str:
    words = {FLOAT_TYPES: "floats", INTEGER_TYPES: "integers", FLOAT_TYPES | INTEGER_TYPES: "floats or integers"}
    if frozenset(allowed) in words:
        return words[frozenset(allowed)]
    return listed(sorted(type_name(number) for number in allowed), "or") if allowed else "a type that isn't read"


def _said(node: OnnxNode) -> int:
    """The type that an attribute says, where no operand does."""
    attributes = node.attributes
    if node.kind == "Constant":
        names = {"value_float": FLOAT, "value_floats": FLOAT, "value_int": INT64, "value_ints": INT64}
        return next((number for name, number in names.items() if name in attributes), _type_of(attributes.get("value")))
    if node.kind == "ConstantOfShape":
        return _type_of(attributes["value"]) if "value" in attributes else FLOAT
    number = attributes.get("to") or attributes.get("dtype") or attributes.get("output_dtype") or 0
    if number and type_name(number).startswith("the unknown type"):
        raise _wrong(node, f"it makes elements of {type_name(number)}")
    return _known(number)


def _of_branches(node: OnnxNode, inner: Mapping[str, Types]) -> Sequence[int]:
    """The types that the branches of an If have for its results."""
    found = [[inner[name].get(value.name, 0) for value in node.attributes[name].outputs] for name in ("then_branch", "else_branch")]
    for index, (taken, other) in enumerate(zip(*found, strict=False)):
        if taken and other and taken != other:
            raise _wrong(node, f"its result {index + 1} is {type_name(taken)} in one branch, and {type_name(other)} in the other")
    return [taken or other for taken, other in zip(*found, strict=False)]


def _wrong(node: OnnxNode, message: str) -> ProgramError:
    return malformed(f"{node.title} ({named(node.op)}): {message}", HELP.get(node.kind, node.checker))
