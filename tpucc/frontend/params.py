"""The params of a source: static values that the command line may set."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tpucc.diagnostics import Diagnostic, Label, Source, UsageError, did_you_mean, listed
from tpucc.frontend import ast
from tpucc.frontend.expressions import evaluate
from tpucc.frontend.frame import Frame, Run
from tpucc.frontend.limits import Limits
from tpucc.frontend.parse import parse_expression
from tpucc.frontend.problem import LimitReached, Problem
from tpucc.frontend.values import POISON, Value, describe, has_tensor, poisoned


def unknown_param(name: str, declared: Collection[str]) -> UsageError:
    """The error of a value for a param that the source doesn't have, from `-D` or `params`."""
    known = f"its params are {listed(list(declared))}" if declared else "it declares none"
    return UsageError(Diagnostic("E0510", f"the source has no param {name}", help=(did_you_mean(name, declared) or known,)))


@dataclass(eq=False)
class Params:
    """Evaluates each param once, when it is first asked for: a param may use those below it."""

    declared: Mapping[str, ast.Param]
    given: Mapping[str, str]
    limits: Limits
    run: Run = field(init=False)
    _values: dict[str, Value] = field(default_factory=dict)
    _asked: list[str] = field(default_factory=list)

    def value(self, name: str) -> Value:
        """The value of a declared param. Raises `Problem` when it depends on itself."""
        if name in self._values:
            return self._values[name]
        if name in self._asked:
            cycle = " → ".join([*self._asked[self._asked.index(name) :], name])
            raise Problem("E0221", f"the param {name} depends on itself: {cycle}", self.declared[name].span)
        self._asked.append(name)
        try:
            self._values[name] = self._evaluated(self.declared[name])
        finally:
            self._asked.pop()
        return self._values[name]

    def evaluate_all(self) -> None:
        """Evaluates every param, so that each error is reported, used or not."""
        for name in self.declared:
            try:
                self.value(name)
            except Problem as problem:
                self.run.reports.add(problem)
                self._values[name] = POISON

    def read_given(self) -> None:
        """Evaluates the values of `-D`. Raises `UsageError` for a name that the source doesn't have, or a value that is none."""
        for name, text in self.given.items():
            if name not in self.declared:
                raise unknown_param(name, self.declared)
            self._values[name] = self._read(name, text)

    def _evaluated(self, param: ast.Param) -> Value:
        value = evaluate(Frame(self.run), param.value)
        if not poisoned(value) and has_tensor(value):
            raise Problem("E0215", f"a param is a static value, and this is {describe(value)}", param.value.span)
        return value

    def _read(self, name: str, text: str) -> Value:
        source = Source(f"-D {name}", text)
        try:
            tree = parse_expression(text, self.limits)
        except (Problem, LimitReached) as found:
            raise _bad(found.diagnostic, source) from None
        run = Run(source, self.limits, {}, self.run.call, self.value, {})
        try:
            value = evaluate(Frame(run), tree)
        except LimitReached as reached:
            raise _bad(replace(reached.diagnostic, help=()), source) from None
        if run.reports:
            raise _bad(run.reports.in_order()[0], source)
        if has_tensor(value):
            raise _bad(Diagnostic("E0215", f"a param is a static value, and this is {describe(value)}", (Label(tree.span),)), source)
        return value


def _bad(found: Diagnostic, source: Source) -> UsageError:
    """A wrong `-D`, with the words that the same error has in a source."""
    mend = (*found.help, "a value is a number, a text in quotes, True, False or a list, as in a source: -D batch=8, -D name='\"relu\"'")
    return UsageError(Diagnostic("E0519", f"this is no value: {found.message}", found.labels, mend), source)
