"""The page of ONNX's operators: what the row of each reads, and what it and the functions that it calls refuse."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import CodeType, FunctionType, ModuleType

from tpucc.interop.onnx.reading.files.model import OPSETS
from tpucc.interop.onnx.reading.integer_operators import OF_INTEGERS
from tpucc.interop.onnx.reading.operators import FAMILIES
from tpucc.interop.onnx.reading.operators.rows import CONSTANT, ROWS, Row

INTRO = f"""\
Of opsets {OPSETS.start} to {OPSETS.stop - 1}; [models from other frameworks](../onnx.md) has the rest. An attribute that isn't in the
table changes nothing here, or follows from the shapes. An operand *must be constant* if it must be known while the file is read: a
constant of the file, or computed of such; old versions of an operator may have it as an attribute. What is refused is E1007, with these
words and the node's name; … stands for numbers and names of the file. A line of several operators holds for each of them.

Every operator refuses operands whose shapes don't fit, empty tensors, constants that aren't numbers (NaN), and, but for those that take
rows or classes, [numbers of rows](../onnx.md#inputs-of-integers-and-booleans).
"""


def onnx_operators_page() -> str:
    parts = ["# Operators of ONNX\n", INTRO, "| operator | attributes | must be constant | refused |", "|---|---|---|---|"]
    same: dict[tuple[str, ...], list[str]] = {}
    for op, row in sorted(ROWS.items()):
        if row.build is not None:
            attributes = ", ".join(f"`{name}`" for name in sorted(row.attributes))
            same.setdefault((attributes, ", ".join(_constant(row)), "; ".join(_refused(row.build))), []).append(op)
    parts += [f"| {', '.join(ops)} | {' | '.join(row)} |" for row, ops in same.items()]
    parts += ["\n## Operators on integers\n", "Each is read as an operator of the table between DequantizeLinear and QuantizeLinear:\n"]
    parts += [f"- {name} as {op}" for name, (op, _) in sorted(OF_INTEGERS.items())]
    others = sorted(op for op, row in ROWS.items() if row.build is None and op != "Constant")
    parts += ["\n## Of constants only\n", f"{', '.join(others)}: their operands must all be constant (E1006).\n"]
    return "\n".join(parts)


def _constant(row: Row) -> list[str]:
    """The operands that must be known."""
    return [operand.name.rstrip("_") for operand in row.operands if operand.kind in CONSTANT]


def _refused(build: object) -> dict[str, None]:
    """The messages of a row, each with its help, in the order of the code."""
    found: dict[str, None] = {}
    for function in _functions(build, set()):
        for node in _syntax(function):
            for part in ast.walk(node):
                if isinstance(part, ast.Call):
                    _note(part, function, found)
    return found


def _note(call: ast.Call, function: FunctionType, found: dict[str, None]) -> None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "Unsupported":
        words = [_words(argument, function) for argument in call.args]
        help = words[1] if len(words) > 1 and not isinstance(call.args[1], ast.Name) else "…"
        found[words[0] + (f" ({help})" if help != "…" else "")] = None
    elif name == "alone":
        found["its result … is used (tpucc computes the first one)"] = None


def _words(node: ast.expr, function: FunctionType) -> str:
    """A text of the code, with … for what is put in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_words(part, function) for part in values)
        case ast.FormattedValue(value=ast.Name(id=name)):
            value = function.__globals__.get(name)
            return f"{value:,}" if isinstance(value, int) else "…"
    return "…"


def _functions(found: object, seen: set[int]) -> Iterator[FunctionType]:
    """A function, those in its closure, and those of the families that it calls by name, each once."""
    if not isinstance(found, FunctionType) or id(found) in seen or found.__module__ not in _modules():
        return
    seen.add(id(found))
    yield found
    for cell in found.__closure__ or ():
        yield from _functions(cell.cell_contents, seen)
    for name in _names(found):
        yield from _functions(found.__globals__.get(name), seen)


def _names(function: FunctionType) -> list[str]:
    """The global names that it uses, in the order of its text: that of its code differs between versions of Python."""
    known = {*_global_names(function.__code__)}
    names = [node for part in _syntax(function) for node in ast.walk(part) if isinstance(node, ast.Name) and node.id in known]
    return [node.id for node in sorted(names, key=lambda node: (node.lineno, node.col_offset))]


def _global_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _global_names(inner)


@cache
def _modules() -> Mapping[str, ModuleType]:
    return {module.__name__: module for module in FAMILIES}


@cache
def _definitions(module: str) -> Mapping[int, list[ast.FunctionDef | ast.Lambda]]:
    """The functions of a module by each line in which one may begin for Python: those of its decorators and its own."""
    found: dict[int, list[ast.FunctionDef | ast.Lambda]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(_modules()[module]))):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            for line in {node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))}:
                found.setdefault(line, []).append(node)
    return found


def _syntax(function: FunctionType) -> Sequence[ast.AST]:
    """The definition, or the lambdas of its line."""
    return _definitions(function.__module__).get(function.__code__.co_firstlineno, ())
