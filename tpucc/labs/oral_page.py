"""An oral sheet as a page: the questions, and from a new sheet of paper on the answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tpucc.diagnostics import printable
from tpucc.labs.grading import Grade
from tpucc.labs.lab import Question
from tpucc.labs.results import printable_lines
from tpucc.see.kit import document, soft
from tpucc.see.svg import NOTHING, Markup, beside, escaped, inlined, joined, tag

FOR = (
    "For the examiner, not for students. Questions and answers show what hidden tests ask. An answer is what the submission did, and what "
    "the lab's own solution does. It is computed, and no verdict: another way may be as good."
)


def oral_page(done: Grade, questions: Sequence[Question], name: str) -> str:
    """The sheet of the submission of this name as HTML."""
    title = f"Lab {done.lab.number} ({done.lab.name}), {done.term}: {printable(name)}"
    points = f"{done.score:g} of {done.most:g} points with --seed {done.seed}, which draws the hidden tests and these questions."
    head = joined([soft(FOR), soft(" ".join(filter(None, (points, printable(done.note)))))])
    asked, told = zip(*(_parts(number, each) for number, each in enumerate(questions, 1)), strict=True)
    sections = [("questions", "Questions", joined(asked)), ("answers", "Answers", joined([head, *told]))]
    facts = "Questions for an oral examination, made of what the submission did. The answers begin on a new page."
    return document(__package__, title, facts, sections, sheet="texts/oral.css")


def _parts(number: int, question: Question) -> tuple[Markup, Markup]:
    """A question and its answer."""
    head = tag("h3", escaped(f"{number}. {printable(question.about)}"))
    asked, given, answer = (escaped(printable_lines(text)) for text in (question.asked, question.given, question.answer))
    asked = Markup(re.sub("`([^`]+)`", r"<code>\1</code>", asked))
    drawn = NOTHING
    if question.picture:
        svg = question.picture()
        (key,) = re.findall(r'<svg[^>]* id="(\w+)"', svg)
        drawn = tag("div", inlined(beside(svg, key, str(number))), class_="chart")
    shown = tag("article", head, tag("p", asked), tag("pre", given) if given else NOTHING, drawn)
    return shown, tag("article", head, tag("pre", answer))
