"""Two compiles side by side, for a page. Only a request for it loads this module, and with it the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from tpucc.explain.comparison.compare import compare
from tpucc.plain_errors import as_error, as_plain, plain_diagnostic
from tpucc.playground.making import Made, made
from tpucc.playground.requests import Answer, Compared, Model, Two
from tpucc.see.comparison.page import comparison_page, headline

Diagnostics = Sequence[Mapping[str, Any]]


def compared(two: Two) -> Answer:
    """b beside a. What is wrong with a side is said of that side."""
    with ExitStack() as stack:
        sides = [_side(model, stack) for model in (two.a, two.b)]
        a, b = (made for made, _ in sides)
        diagnostics = list(_of_sides(two, sides[0][1], sides[1][1]))
        if a is None or b is None:
            return Answer(diagnostics)
        names = tuple(f"{said}: {_command(model)}" for said, model in zip(two.said, (two.a, two.b), strict=True))
        found = compare(a[1], b[1], (a[0].notes, b[0].notes), (names[0], names[1]), two.said)
        page = comparison_page(found, a[1], b[1])
        return Compared(diagnostics, summary=headline(found), cause=found.cause, cycles=(found.cycles.a, found.cycles.b), page=page)


def _side(model: Model, stack: ExitStack) -> tuple[Made | None, Diagnostics]:
    """A compiled side with its warnings, or none with its errors."""
    try:
        found = stack.enter_context(made(model))
    except Exception as error:
        return None, as_plain(as_error(error))
    compilation, _ = found
    warnings = compilation.model.warnings if compilation.model else ()
    return found, [plain_diagnostic(warning, compilation.source) for warning in warnings]


def _of_sides(two: Two, a: Diagnostics, b: Diagnostics) -> Iterator[dict[str, Any]]:
    """The diagnostics of b, and then the diagnostics that a alone has, each with its side."""
    names = {"a": two.said[0], "b": two.said[1], "both": f"{two.said[0]} and {two.said[1]}"}
    sided = [("both" if each in a else "b", each) for each in b] + [("a", each) for each in a if each not in b]
    for side, each in sided:
        yield {**each, "side": side, "message": f"{names[side]}: {each['message']}"}


def _command(model: Model) -> str:
    """The name of a side, with the options that `tpucc compile` would have for it."""
    params = [f"-D {name}={value}" for name, value in model.params.items()]
    own = [*(["--pass pass.py"] if model.passes else []), *(f"--replace {stage}={stage}.py" for stage in model.stages)]
    return " ".join([model.name, f"--target {model.target}", f"-O{model.level}", *params, *own])
