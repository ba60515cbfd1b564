"""Weights that all turns of a loop share, because nothing says that each has its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tpucc.diagnostics import Diagnostic, Label, Span
from tpucc.frontend import ast


def shared(module: ast.Module, repeated: Collection[Span]) -> Iterator[Diagnostic]:
    """A warning for each weight without a key that several turns of a loop declare: its key is its name, in every turn. Those that are
    `repeated` were, in one call of their function."""
    for item in module.items:
        if isinstance(item, ast.Def | ast.ModelDef):
            loops = [statement for statement in ast.statements(item.body) if isinstance(statement, ast.For)]
            found = {each.span: (each, loop) for loop in loops for each in ast.statements(loop.body) if isinstance(each, ast.Weight)}
            yield from (_warning(weight, innermost) for weight, innermost in found.values() if weight.span in repeated)


def _warning(weight: ast.Weight, loop: ast.For) -> Diagnostic:
    name, turn = weight.name.text, loop.target.text if isinstance(loop.target, ast.Identifier) else "i"
    help = (f'for one in each turn, give it a key with the turn in it: = "{name}{{{turn}}}"; for one in all, declare it before the loop',)
    return Diagnostic("W0208", f"all turns of the loop have one weight {name}", (Label(weight.name.span),), help, "warning")
