"""An oral sheet: questions made of what a submission did in the lab's own tests, with answers for the examiner.

The tests run as for a grade, in the same jail, and calls are kept with their answers. Of these the lab `asks`; another kind of question is
what a short call returns. One more is about a change of the submission's text: the tests run again with it. The last one is what the grade
found first.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from random import Random
from textwrap import dedent
from tokenize import detect_encoding
from typing import Any

import numpy as np

from tpucc.diagnostics import Error, some
from tpucc.guest.jails import Jail
from tpucc.guest.values import Plain
from tpucc.labs.call_text import call_text, shown
from tpucc.labs.grading import Contents, Grade, Result, Watch, contents_of, grade_contents, workshop_of
from tpucc.labs.here import executed
from tpucc.labs.lab import ASKED, Asked, Asks, Exchange, Lab, Oral, Outcome, Question, Submission, Term, Test, Words, require_fit
from tpucc.labs.likeness import parsed
from tpucc.labs.results import report
from tpucc.labs.solutions import REFERENCE, is_archive
from tpucc.plugins.failures import Failed

WANTED = 3
"""Questions on the calls of a run."""
LIVELY = 5
"""Calls of which a question is made, until one isn't dull."""
SHORT = 300
"""Characters of a call, and of its answer, that can be worked out at a table."""
MISSED = "No test loses points by it."
TRIED = 6
"""Changes of the text with which the tests run, until the submission goes on with one, and is wrong."""
NAMED, LINES, MOST = 8, 5, 40
"""Differences of two answers that are named; lines of what a test finds after a change of the text, and of what the grade found."""
LONG = 60
"""Characters of what is said of two answers, from which on it isn't said twice if it is the same."""
LEFT_OUT = (ast.If, ast.AugAssign, ast.Expr, ast.Continue, ast.Break)
"""Kinds of statements that may be left out. Without one that gives a value a name, most functions end with an exception."""
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "==": "!=", "!=": "=="}
SIGN = re.compile(r"[<>=!]=|[<>+-]|\b\d+\b")
"""An operator, or a number."""


def examined(lab: Lab, path: Path, term: Term, seed: int, jail: Jail) -> tuple[Grade, Sequence[Question]]:
    """The grade of a submission, and the questions to it: the same for the same seed, and none where no test could be run. Raises
    `Left`."""
    contents = contents_of(lab, path, term)
    draw = Random(f"{seed}/{contents.digest}/oral")
    kept, questions = list[Exchange](), list[Question]()

    def noted(test: Test) -> Test:
        def run(submission: Submission) -> Outcome:
            asked = ASKED.get() or Asked()
            try:
                return test.run(submission)
            finally:
                kept.extend(replace(each, test=test.name) for each in asked.exchanges)

        return replace(test, run=run)

    def ask(submission: Submission) -> Outcome:
        questions.extend(_of_calls(kept, (*lab.asks, returned), Examined(lab, term, draw, submission)))
        return Outcome(1, "")

    with workshop_of(lab) as shared:

        def again(changed: Contents, of: Lab, watch: Watch | None = None) -> Grade:
            return grade_contents(of, changed, seed, jail, watch=watch, shared=shared)

        done = again(contents, _with(lab, noted, Test("questions", 0, ask, hidden=True)))
        done = replace(done, lab=lab, tests=done.tests[:-1])
        if done.problem:
            return done, ()
        if done.score:
            questions += _of_changes(contents, again, done, draw, WANTED + 1 - len(questions))
    return done, (*questions, *_of_findings(done))


def _with(lab: Lab, changed: Callable[[Test], Test], *more: Test) -> Lab:
    """The lab with each of its tests changed, and with more tests at the end."""

    def hidden(term: Term, seed: int) -> Sequence[Test]:
        return *map(changed, lab.hidden(term, seed)), *more

    return replace(lab, public=lambda term: tuple(map(changed, lab.public(term))), hidden=hidden)


class Examined:
    """A submission, as `lab.Oral` has it."""

    def __init__(self, lab: Lab, term: Term, draw: Random, submission: Submission) -> None:
        self.rules, self.draw, self._submission = lab.rules(term), draw, submission
        known = lab.functions and not is_archive()
        self._solution = executed(lab.material(REFERENCE, term), lab.material_folder / REFERENCE) if known else None

    def beside(self, exchange: Exchange, words: Words) -> str:
        if self._solution is None:
            return ""
        try:
            told = words(_again(exchange, exchange.arguments, self._solution))
            return f" The reference: {'the same' if len(told) > LONG and told == words(exchange) else told}."
        except Failed as failure:
            return f" The reference: {failure.raised}."

    def what_if(self, exchange: Exchange, change: str, arguments: Sequence[Any], words: Words, **more: Any) -> Question:
        asked = f"If {change}: what would your `{exchange.function}` return then, and why?"
        try:
            if different(exchange.answer, _again(exchange, exchange.arguments, self._submission).answer):
                return Question(asked, "Called again without a change, it returns something else than before.", dull=True, **more)
            then = _again(exchange, arguments, self._submission)
            differs = different(exchange.answer, then.answer)
            told = f"{differs or 'The answer is the same'}. Then: {_said(words, then)}. Before: {_said(words, exchange)}."
        except Failed as failure:
            differs = "it fails"
            told = f"It would have no such result: {failure.words}{self.beside(replace(exchange, arguments=tuple(arguments)), words)}"
        return Question(asked, told, dull=not differs, **more)


def _said(words: Words, exchange: Exchange) -> str:
    try:
        return words(exchange)
    except Failed as failure:
        return failure.raised


def _again(exchange: Exchange, arguments: Sequence[Any], who: Submission) -> Exchange:
    """A call as in an exchange, with these arguments. Raises `Failed`."""
    return replace(exchange, arguments=tuple(arguments), answer=who.call(exchange.function, *arguments))


def different(before: Plain, after: Plain) -> str:
    """How two answers differ, as the beginning of a sentence: by the places of numbers, else by the entries of lists or the lines of texts;
    nothing where they don't."""
    if len(arrays := [np.asarray(each) for each in (before, after) if _is_numbers(each)]) == 2 and arrays[0].shape == arrays[1].shape:
        places = map(tuple, np.argwhere(arrays[0] != arrays[1]).tolist())
        told = [f"[{', '.join(map(str, place))}] from {arrays[0][place]} to {arrays[1][place]}" for place in places]
        return f"These entries change: {some(told, NAMED)}" if told else ""
    one, other = (
        Counter(each.splitlines() if isinstance(each, str) else map(shown, each if isinstance(each, list) else [each]))
        for each in (before, after)
    )
    sides = [(some([f"`{text.strip()}`" for text in side], NAMED), word) for side, word in ((other - one, "new"), (one - other, "gone"))]
    return ", ".join(f"{word}: {texts}" for texts, word in sides if texts)


def _is_numbers(answer: Plain) -> bool:
    return isinstance(answer, np.ndarray) or (isinstance(answer, list) and all(isinstance(each, int | float) for each in answer))


def _of_calls(kept: Sequence[Exchange], asks: Sequence[Asks], oral: Oral) -> Sequence[Question]:
    """Questions of different kinds as far as there are some, each on a call that is drawn, of another test if possible."""
    found = list[Question]()
    for ask in oral.draw.sample(asks, len(asks)) * WANTED:
        seen, tests = [(each.asked, each.given) for each in found], [each.about for each in found]
        drawn = sorted(oral.draw.sample(kept, len(kept)), key=lambda each: each.test in tests)
        made = islice((each for each in _made(ask, drawn, oral) if (each.asked, each.given) not in seen), LIVELY)
        found += sorted(made, key=lambda each: each.dull)[: min(1, WANTED - len(found))]
    return found


def _made(ask: Asks, kept: Sequence[Exchange], oral: Oral) -> Iterator[Question]:
    """Questions of one kind, to the first that isn't dull."""
    for exchange in kept:
        with suppress(Failed, Error):
            question = ask(exchange, oral)
            yield replace(question, about=exchange.test)
            if not question.dull:
                return


def returned(exchange: Exchange, oral: Oral) -> Question:
    """What a call returns, where both are short."""
    call, answer = call_text(exchange.function, exchange.arguments), _text(exchange)
    whole = "…" not in call + answer and max(len(call), len(answer)) <= SHORT
    require_fit(whole and bool(exchange.arguments) and ":" not in exchange.function)
    asked = f"What does your `{exchange.function}` return for this call? Go through your lines."
    return Question(asked, f"{answer}\n{oral.beside(exchange, _text).strip()}", call, dull=len(answer) < 3)


def _text(exchange: Exchange) -> str:
    lines = exchange.answer if isinstance(exchange.answer, list) else [exchange.answer]
    return "\n".join(lines) if lines and all(isinstance(line, str) for line in lines) else shown(exchange.answer)


Again = Callable[[Contents, Lab, Watch], Grade]
"""The grade of a changed submission by the tests of a lab, which is watched."""


def _of_changes(contents: Contents, again: Again, done: Grade, draw: Random, count: int) -> Sequence[Question]:
    """Questions on changes of the submission's text, of lines that the lab doesn't give. Those come first with which it goes on, and is
    wrong."""
    begun = {line.strip() for text in done.lab.files(done.term).values() for line in text.splitlines()}
    changes = [each for each in _changes(contents, done.lab) if _lines(contents.files[each[0]])[0][each[1]].strip() not in begun]
    found = list[Question]()
    for name, first, last, line in draw.sample(changes, min(len(changes), max(TRIED, count))):
        lines, encoding = _lines(contents.files[name])
        text = "\n".join([*lines[:first], line, *lines[last:]]).encode(encoding)
        if done.lab.functions and isinstance(parsed(text), str):
            continue  # it is no Python any more
        lost = _first_lost(replace(contents, files={**contents.files, name: text}), again, done)
        told = f"`{lost.test.name}` loses points: {lost.outcome.message}" if lost else MISSED
        asked, answer = "What would become of your results with this change, and why?", "\n".join(told.splitlines()[:LINES])
        given = f"{dedent(chr(10).join(lines[first:last]))}\n→ {line.strip().removesuffix('pass') or '(left out)'}"
        dull = lost is None or bool(lost.outcome.trouble)
        found.append(Question(asked, answer, given, dull=dull, about=f"{name}, line {first + 1}"))
        if sum(not each.dull for each in found) == count:
            break
    return sorted(found, key=lambda each: (each.dull, each.answer == MISSED))[:count]


def _lines(content: bytes) -> tuple[list[str], str]:
    """The lines of a file as Python counts them, and its encoding; none of a file that isn't text."""
    try:
        encoding, _ = detect_encoding(BytesIO(content).readline)
        return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n").split("\n"), encoding
    except (SyntaxError, UnicodeDecodeError):
        return [], "utf-8"


def _changes(contents: Contents, lab: Lab) -> Iterator[tuple[str, int, int, str]]:
    """Changes of a file: the first line, the line behind the last, and a line in their place. A statement of Python is left out, a number
    is one more, an operator is another; of a text that a lab asks for, an instruction is left out."""
    for name, content in sorted(contents.files.items()):
        lines, _ = _lines(content)
        if not lab.functions and name in lab.files(contents.term):
            yield from ((name, n, n + 1, "") for n, line in enumerate(lines) if line.partition(";")[0].strip())
        tree = parsed(content) if lab.functions and lines and name.endswith(".py") else ""
        for node in () if isinstance(tree, str) else ast.walk(tree):
            if isinstance(node, LEFT_OUT) and not isinstance(getattr(node, "value", None), ast.Constant):
                line = lines[node.lineno - 1]
                yield name, node.lineno - 1, node.end_lineno or node.lineno, f"{line[: len(line) - len(line.lstrip())]}pass"
            elif (at := _place(node)) is not None:
                text, ends = lines[at.lineno - 1].encode(), (at.col_offset, at.end_col_offset or 0)
                before, own, behind = (part.decode("utf-8", "replace") for part in (text[: ends[0]], text[slice(*ends)], text[ends[1] :]))
                changed = SIGN.sub(lambda sign: OTHER.get(sign[0]) or str(int(sign[0]) + 1), own, count=1)
                if changed != own:
                    yield name, at.lineno - 1, at.lineno, f"{before}{changed}{behind}"


def _place(node: ast.AST) -> ast.expr | None:
    """Where a number or an operator stands in one line."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return node
        case ast.Compare(left=left, comparators=[right]) | ast.BinOp(left=left, right=right) if left.end_lineno == right.lineno:
            return ast.Constant(0, lineno=right.lineno, col_offset=left.end_col_offset or 0, end_col_offset=right.col_offset)
    return None


def _first_lost(contents: Contents, again: Again, done: Grade) -> Result | None:
    """The first test that a changed submission loses points of; no test runs after it."""
    before = {result.test.name: result.score for result in done.results}
    lost = list[Result]()

    def watch(sofar: Grade) -> None:
        fewer = [result for result in sofar.results if result.score < before[result.test.name]]
        lost.extend(fewer[: 1 - len(lost)])

    def until(test: Test) -> Test:
        return replace(test, run=lambda submission: Outcome(0, "") if lost else test.run(submission))

    again(contents, _with(done.lab, until), watch)
    return lost[0] if lost else None


def _of_findings(done: Grade) -> Sequence[Question]:
    """A question on the first test that isn't right."""
    for result in done.results[: len(done.tests)]:
        if not (outcome := result.outcome).passed and not result.fault:
            points = f"{result.score:g} of {result.test.points:g} points"
            asked = f"This test gives your submission {points}. What does your code do there, and what should it do?"
            told = report(replace(result, outcome=replace(outcome, given="", drawing="")), done)
            given = outcome.given or ("" if outcome.picture else outcome.drawing)
            return [Question(asked, "\n".join(told.splitlines()[:MOST]), given, outcome.picture, about=result.test.name)]
    return []
