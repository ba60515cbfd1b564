"""Arguments to parameters: the rules of Python's calls, for `def`s, operators and optimizers alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tpucc.diagnostics import Label, Span, counted, did_you_mean, listed
from tpucc.frontend import ast
from tpucc.frontend.problem import Problem
from tpucc.frontend.words import advice

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Callee:
    """What a call calls: its name, its parameters and whether each is required, its place if it stands in the source, else how a call of it
    looks, and what kind of thing it is."""

    name: str
    formals: tuple[tuple[str, bool], ...]
    definition: Span | None
    signature: str
    kind: str = "operator"

    @property
    def notes(self) -> tuple[Label, ...]:
        return (Label(self.definition, f"{self.name} is defined here"),) if self.definition else ()

    @property
    def help(self) -> tuple[str, ...]:
        return () if self.definition else (f"the {self.kind} is {self.signature}",)


def bind(callee: Callee, arguments: Sequence[ast.Argument], values: Sequence[Value], span: Span) -> dict[str, Value]:
    """What each parameter gets: the value of its argument. Raises `Problem` when some get none, or two, or arguments are left over."""
    positional = [argument for argument in arguments if argument.name is None]
    if len(positional) > len(callee.formals):
        raise _too_many(callee, positional, len(positional))
    bound = {name: number for number, (name, _) in enumerate(callee.formals[: len(positional)])}
    for number, argument in enumerate(arguments):
        if argument.name is not None:
            name = argument.name.text
            _require_parameter(callee, argument.name)
            if name in bound:
                first = Label(arguments[bound[name]].span, "it already gets its value here")
                raise Problem("E0212", f"{callee.name} gets its argument {name} twice", argument.name.span, notes=(first,))
            bound[name] = number
    missing = [name for name, required in callee.formals if required and name not in bound]
    if missing:
        what = f"the argument {missing[0]}" if len(missing) == 1 else f"the arguments {listed(missing)}"
        raise Problem("E0209", f"{callee.name} needs {what}", span, "missing in this call", *callee.help, notes=callee.notes)
    return {name: values[number] for name, number in bound.items()}


def _too_many(callee: Callee, positional: Sequence[ast.Argument], found: int) -> Problem:
    most = len(callee.formals)
    takes = f"at most {counted(most, 'argument')}" if not all(required for _, required in callee.formals) else counted(most, "argument")
    message = f"{callee.name} takes {takes if most else 'no arguments'}, found {found}"
    return Problem("E0210", message, positional[most].span, "one too many", *callee.help, notes=callee.notes)


def _require_parameter(callee: Callee, name: ast.Identifier) -> None:
    names = [name for name, _ in callee.formals]
    if name.text not in names:
        near = did_you_mean(name.text, names)
        known = f"its arguments are {listed(names)}" if names else "it takes none"
        instead = "" if callee.definition else _instead(name.text, names)
        mends = (instead, known) if instead else (near or known,)
        raise Problem("E0211", f"{callee.name} has no argument {name.text}", name.span, "", *mends, notes=callee.notes)


def _instead(name: str, names: Sequence[str]) -> str:
    """Our argument for another framework's argument `name`, of an operator with the arguments `names`; empty when unknown."""
    here = advice("renamed", name)
    return f"the argument is called {here} here" if here in names else advice("arguments", name)
