"""The params of a source: static values that the command line may set."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from tpucc.diagnostics import Diagnostic, Source, UsageError, did_you_mean, listed
from tpucc.language import ast
from tpucc.language.expressions import required_value
from tpucc.language.frame import Frame, Run
from tpucc.language.parse import parse_expression
from tpucc.language.problem import LimitReached, Problem, Unknown
from tpucc.language.values import POISON, Value, describe, has_tensor


def unknown_param(name: str, declared: Collection[str]) -> UsageError:
    """The error of a value for a param that the source doesn't have, from `-D` or `params`."""
    known = f"its params are {listed(list(declared))}" if declared else "it declares none"
    return UsageError(Diagnostic("E0510", f"the source has no param {name}", help=(did_you_mean(name, declared) or known,)))


@dataclass(eq=False)
class Params:
    """Evaluates each param once, when it is first asked for: a param may use those below it."""

    run: Run
    _values: dict[str, Value] = field(default_factory=dict)
    _asked: list[str] = field(default_factory=list)

    def value(self, name: str) -> Value:
        """The value of a declared param. Raises `Problem` when it depends on itself."""
        if name in self._values:
            return self._values[name]
        param = self.run.params[name]
        if name in self._asked:
            cycle = " → ".join([*self._asked[self._asked.index(name) :], name])
            raise Problem("E0221", f"the param {name} depends on itself: {cycle}", param.span)
        self._asked.append(name)
        try:
            self._values[name] = _static(Frame(self.run), param.value)
        except Unknown:
            self._values[name] = POISON
        finally:
            self._asked.pop()
        return self._values[name]

    def evaluate_all(self) -> None:
        """Evaluates every param, so that each error is reported, used or not."""
        for name in self.run.params:
            try:
                self.value(name)
            except Problem as problem:
                self.run.reports.add(problem)
                self._values[name] = POISON

    def read_given(self) -> None:
        """Evaluates the values of `-D`. Raises `UsageError` for a name that the source doesn't have, or a value that is none."""
        for name, text in self.run.given.items():
            if name not in self.run.params:
                raise unknown_param(name, self.run.params)
            self._values[name] = self._read(Source(f"-D {name}", text))

    def _read(self, source: Source) -> Value:
        run = Run(source, self.run.limits, self.run.call)
        try:
            return _static(Frame(run), parse_expression(source.text, run.limits))
        except LimitReached as reached:
            wrong = reached.diagnostic
        except Problem as problem:
            wrong = problem.diagnostic
        except Unknown:
            wrong = run.reports.in_order()[0]
        mend = "a value is a number, a text in quotes, True, False or a list, as in a source: -D batch=8, -D name='\"relu\"'"
        raise UsageError(replace(wrong, code="E0519", message=f"this is no value: {wrong.message}", help=(*wrong.help, mend)), source)


def _static(frame: Frame, node: ast.Expression) -> Value:
    """The value of an expression that holds no tensor. Raises `Problem` and `Unknown`."""
    value = required_value(frame, node)
    if has_tensor(value):
        raise Problem("E0215", f"a param is a static value, and this is {describe(value)}", node.span)
    return value
