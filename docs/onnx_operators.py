"""The page of ONNX's operators: what the rule of each reads and refuses, found in the rule itself and in the functions that it calls."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType, ModuleType

from tpucc.interop.onnx.reading.files.model import OPSETS
from tpucc.interop.onnx.reading.folding import FOLDS
from tpucc.interop.onnx.reading.rules import FAMILIES, RULES, gate_functions

CONSTANT = {"array", "integers", "number"}
"""The methods of a call that give an operand which must be known."""
INTRO = f"""\
Of opsets {OPSETS.start} to {OPSETS.stop - 1}; [models from other frameworks](../onnx.md) has the rest. An attribute that isn't in the
table changes nothing here, or follows from the shapes. An operand *must be constant* if it must be known while the file is read: a
constant of the file, or computed of such. What is refused is E1007, with these words and the node's name; … stands for numbers and
names of the file. A line of several operators holds for each of them.

Every operator refuses operands whose shapes don't fit, empty tensors, constants that aren't numbers (NaN), and, but for those that take
rows or classes, [numbers of rows](../onnx.md#inputs-of-integers-and-booleans).
"""


@dataclass
class Facts:
    """Of a rule: attributes, operands that must be constant, and messages with their help, in the order of the code."""

    attributes: dict[str, None] = field(default_factory=dict)
    constant: dict[str, None] = field(default_factory=dict)
    refused: dict[str, None] = field(default_factory=dict)


def onnx_operators_page() -> str:
    parts = ["# Operators of ONNX\n", INTRO, "| operator | attributes | must be constant | refused |", "|---|---|---|---|"]
    same: dict[tuple[str, ...], list[str]] = {}
    for op in sorted(RULES):
        facts = _facts(RULES[op])
        row = tuple(", ".join(words) for words in ((f"`{name}`" for name in sorted(facts.attributes)), sorted(facts.constant)))
        same.setdefault((*row, "; ".join(facts.refused)), []).append(op)
    parts += [f"| {', '.join(ops)} | {' | '.join(row)} |" for row, ops in same.items()]
    parts += [
        "\n## Of constants only\n",
        f"{', '.join(sorted({*FOLDS} - {*RULES, 'Constant'}))}: their operands must all be constant (E1006).\n",
    ]
    return "\n".join(parts)


def _facts(rule: object) -> Facts:
    found = Facts()
    for function in _functions(rule, set()):
        for node in _syntax(function):
            for part in ast.walk(node):
                if isinstance(part, ast.Call):
                    _note(part, function, found)
    return found


def _note(call: ast.Call, function: FunctionType, found: Facts) -> None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    words = [_words(argument, function) for argument in call.args]
    if name == "Unsupported":
        help = words[1] if len(words) > 1 and not isinstance(call.args[1], ast.Name) else "…"
        found.refused[words[0] + (f" ({help})" if help != "…" else "")] = None
    elif name == "attribute" and words[0] != "…":
        found.attributes[words[0]] = None
    elif name in ("axis", "axes") and isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "c":
        found.attributes[name] = None
        found.constant |= {"the list of axes": None} if name == "axes" else {}
    elif name in CONSTANT and len(words) > 1 and words[1] != "…":
        found.constant[words[1]] = None
    elif name == "alone":
        found.refused["its result … is used (tpucc computes the first one)"] = None


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
    """A function, those in its closure, and those of the rules that it calls by name, each once."""
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
    return {module.__name__: module for module in (*FAMILIES, gate_functions)}


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(_modules()[module]))


def _syntax(function: FunctionType) -> Iterator[ast.AST]:
    """The definition, or the lambdas of its line."""
    for node in ast.walk(_tree(function.__module__)):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node.lineno == function.__code__.co_firstlineno:
            yield node
