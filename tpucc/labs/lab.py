"""What a lab is: its tests, and what a test asks of a submission.

A test runs in the grader's process. It calls functions of the submission through `Submission.call`, which a child process answers: the
grader never imports a submission.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from random import Random
from shlex import quote
from typing import Any, Protocol, TypeVar

from tpucc.arguments import require_package
from tpucc.back_end import STAGES
from tpucc.diagnostics import printable
from tpucc.guest.values import Plain
from tpucc.plugins.failures import Failed


class Submission(Protocol):
    """A student's work, as a test sees it."""

    def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Plain:
        """What the submission's `function` returns for `arguments`, or one of tpucc's, as `module:function`, which gets the submission's
        module first. Raises `Failed`."""

    def defines(self) -> tuple[str, ...]:
        """The names of what can be called in the submission's main file. Raises `Failed`."""

    def text(self, name: str) -> str:
        """The text of a file of the submission. Raises `Failed` when it isn't there."""


Call = tuple[str, tuple[Any, ...]]
"""A function of a submission, and what it is called with."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call of a submission, and its answer; the test's name, once it is known."""

    function: str
    arguments: tuple[Any, ...]
    answer: Plain
    test: str = ""


@dataclass(slots=True)
class Asked:
    """What a submission was asked last, what draws the inputs of its answers, and the first calls that it has answered."""

    call: Call | None = None
    seed: int = 0
    exchanges: list[Exchange] = field(default_factory=list)


ASKED: ContextVar[Asked | None] = ContextVar("ASKED", default=None)
"""Of the test that runs."""


def judging_seed() -> int:
    """What draws the inputs on which an answer is judged, in the test that runs. Of a grader's tests, the public ones too, no submission
    knows it: an answer that is right on known inputs only, such as a constant, is wrong on these."""
    asked = ASKED.get()
    return asked.seed if asked else 0


def last_call() -> Call | None:
    """What the submission was asked last in the test that runs."""
    asked = ASKED.get()
    return asked.call if asked else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test found. `share` of its points are earned, 0 to 1. The texts say what was given, expected and found, where that helps:
    what was given is the `call` in words, where nothing else is said.

    `drawing` is a picture in characters, for a terminal; `picture` an SVG, made when somebody looks.
    """

    share: float
    message: str
    given: str = ""
    expected: str = ""
    found: str = ""
    drawing: str = ""
    picture: Callable[[], str] | None = None
    measures: Mapping[str, float] | None = None
    """Numbers for the leaderboard, such as the cycles of a program."""
    call: Call | None = field(default_factory=last_call, compare=False, repr=False)
    """The call that this was found of, to be repeated: the last one before it was found, where a test doesn't say another."""
    trouble: str = ""
    """Of a submission that gave no result, what kind of failure it was, in words that are none of the submission's."""

    @property
    def passed(self) -> bool:
        """Whether all points are earned."""
        return self.share >= 1


class Wrong(Failed):
    """An answer of a submission that loses the points of a test, with the `outcome` that says so: its message and what else is `told`."""

    def __init__(self, message: str, **told: Any) -> None:
        super().__init__("wrong", message)
        self.outcome = Outcome(0, message, **told)


def lost(failure: Failed) -> Outcome:
    """What a test finds where it asks for an answer and there is none, or a wrong one."""
    if isinstance(failure, Wrong):
        return failure.outcome
    return Outcome(0, failure.words, trouble=TROUBLES.get(failure.kind, "it raised an exception"))


TROUBLES = {
    "time": "a call took too long",
    "ended": "its process ended",
    "result": "an answer has the wrong form",
    "wrong": "",
    "file": "no such file",
}
"""Kinds of failures that are no exceptions, in words that are none of the submission's."""


@dataclass(frozen=True, slots=True)
class Test:
    """One line of a grade. `run` raises `Failed` where the submission gives no result; the points are lost then."""

    __test__ = False  # pytest collects classes of this name
    name: str
    points: float
    run: Callable[[Submission], Outcome]
    hidden: bool = False


DIGITS = 16
"""Hexadecimal digits that the name of a student's variant has behind the term's."""
_STUDENTS_OWN = re.compile(rf"-[0-9a-f]{{{DIGITS}}}$")


@dataclass(frozen=True, slots=True)
class Term:
    """The variant of a term: from its name, each lab draws its shapes, its constants and one of its rules. No name: the lab as written."""

    name: str = ""

    def __str__(self) -> str:
        return f"term {printable(self.name)}" if self.name else "as written, without a term"

    @property
    def option(self) -> str:
        """What a command needs to be of this term, after a space: ` --term spring`; nothing without a term."""
        return f" --term {quote(printable(self.name))}" if self.name else ""

    def draw(self, lab: str) -> Random | None:
        """A source of numbers that is this term's and this lab's, or None without a term."""
        return Random(f"{self.name}/{lab}") if self.name else None

    def has_structure(self, lab: str) -> bool:
        """Whether a lab's machine is of another structure: in half of the terms, and then in all variants of a term for its students."""
        return bool(self.name) and Random(f"{_STUDENTS_OWN.sub('', self.name)}/{lab} structure").random() < 0.5


AS_WRITTEN = Term()


@dataclass(frozen=True, slots=True)
class Question:
    """What is `asked` of a student in an oral examination, with a text that is `given` and a picture, an SVG; and the `answer`, for the
    examiner. It is `dull` if nothing happens in the answer: then another one is looked for. `about` is where it comes from."""

    asked: str
    answer: str
    given: str = ""
    picture: Callable[[], str] | None = None
    dull: bool = False
    about: str = ""


Words = Callable[[Exchange], str]
"""Says what is to be known of an answer. Raises `Failed`."""


class Oral(Protocol):
    """What a lab's questions are made with: the term's `rules`, a source of numbers, and the submission, which is there to be called."""

    rules: Any
    draw: Random

    def beside(self, exchange: Exchange, words: Words) -> str:
        """What words say of the same call of the lab's own solution, as a sentence that a blank begins; nothing where that isn't known."""

    def what_if(self, exchange: Exchange, change: str, arguments: Sequence[Any], words: Words, **more: Any) -> Question:
        """What the submission returns for other arguments, whose `change` stands behind "If", and what `words` say of the old and the new
        exchange. `more` is what else the question has."""


Asks = Callable[[Exchange, Oral], Question]
"""Makes a question of a call. Raises `Failed`, or `Error`, where none can be made of it."""


def require_fit(holds: bool, otherwise: str = "no question is made of this") -> None:
    """Raises `Failed` where a call isn't one of which a question is made."""
    if not holds:
        raise Failed("wrong", otherwise)


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab: what the student writes, and the tests of it. `declared` makes one of its folder.

    `file` is the submission's main file, or `program` where there is one; `functions` are what it defines. A lab without functions asks for
    texts only, and needs no child.
    `public(term)` are the tests that `check` runs, `hidden(term, seed)` those that only `grade` runs. All follow from
    `rules(term)`, and so do `words(term)`, which are put into the handout, the skeleton and the solutions for `{{name}}`; these lie in
    `material`. `ranks` names the measure by which a leaderboard
    sorts, the least first; empty for a lab without one.
    """

    number: int
    name: str
    title: str
    writes: str
    """What a student writes, what the tests look for, and what the points follow: a few words each, for the page of the labs."""
    looks_for: str
    points_by: str
    file: str
    functions: tuple[str, ...]
    public: Callable[[Term], Sequence[Test]]
    hidden: Callable[[Term, int], Sequence[Test]]
    rules: Callable[[Term], Any]
    words: Callable[[Term], Mapping[str, Any]]
    folder: Path
    ranks: str = ""
    open: bool = False
    """Whether a good solution for one term may be one for another: a race has no rule of its own."""
    floor: float = 0
    """What the skeleton gets, and whoever has not understood the task."""
    modules: tuple[str, ...] = ()
    """Modules that a call needs: the child imports them before it loads the submission."""
    needs: tuple[str, ...] = ()
    """Packages that tests need beyond those of tpucc."""
    extra: str = ""
    """The extra of tpucc's that has these packages."""
    begun: Callable[[Term], Mapping[str, str]] | None = None
    """The files that a student begins with, by their names, where it isn't `file` with the text `skeleton.py`."""
    asks: Sequence[Asks] = ()
    """What makes questions of an oral examination, each of another kind."""

    def require(self) -> None:
        """Raises `UsageError` E0963 where a package isn't installed that tests need."""
        for name in self.needs:
            require_package(f"lab {self.number}", name, name)

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages of `needs` that aren't installed."""
        return tuple(name for name in self.needs if find_spec(name) is None)

    @property
    def program(self) -> str:
        """The name of the program that may stand in the place of `file`; empty of a lab that asks for more than stages of the compiler."""
        return self.file.removesuffix(".py") if self.functions and set(self.functions) <= set(STAGES) else ""

    @property
    def material_folder(self) -> Path:
        """The folder of the lab's texts: handout, skeleton, reference."""
        return self.folder / MATERIAL

    def structure(self, term: Term) -> str:
        """What the machine of a term has in another way than that of other terms, in words; nothing where it has other numbers alone."""
        return str(getattr(self.rules(term), "structure", ""))

    def files(self, term: Term) -> Mapping[str, str]:
        """The files that a student begins with."""
        return self.begun(term) if self.begun else {self.file: self.material("skeleton.py", term)}

    def material(self, name: str, term: Term) -> str:
        """A text of the lab's folder `material`, with the term's words."""
        return self.filled((self.material_folder / name).read_text("utf-8"), term)

    def filled(self, text: str, term: Term) -> str:
        """A text with the term's words; `term` is a word of every lab. Raises `KeyError` for a word that the lab doesn't have."""
        return filled(text, {"term": term, **self.words(term)})


def filled(text: str, words: Mapping[str, Any]) -> str:
    """A text in which a word stands for each `{{name}}`, in which a word's attribute and its format may be named as in an f-string:
    `{{cycles.full:g}}`. Raises `KeyError` for a name that has no word."""
    first, *parts = text.split("{{")
    return first + "".join(f"{{{name}}}".format_map(words) + rest for name, _, rest in (part.partition("}}") for part in parts))


def words_of(rules: object) -> dict[str, Any]:
    """The fields and properties of a term's rules, which are words of the lab's texts."""
    return {name: value for name in dir(rules) if name[0] != "_" and not callable(value := getattr(rules, name))}


def texts_of(declared: Mapping[str, Mapping[str, Mapping[str, str]]], rules: object, words: Mapping[str, Any]) -> dict[str, str]:
    """The words for which a `lab.toml` has texts, with other `words` in them. Each names a field of the rules, or a field of a field, and
    has a text for each of its values; for others it is `else`."""
    found = dict[str, str]()
    for word, choice in declared.items():
        ((name, texts),) = choice.items()
        value = str(attrgetter(name)(rules)).lower()
        found[word] = filled(texts[value if value in texts else "else"], words)
    return found


MATERIAL = "material"
"""The folder of a lab's texts, inside the lab's own."""
DECLARATION = "lab.toml"
"""The file of a lab's folder that declares the lab."""


def declaration(folder: Path) -> dict[str, Any]:
    """What a lab's folder declares: `number`, `title`, `file`, the other fields of `Lab` that are plain values, and texts of `words`."""
    said = tomllib.loads((folder / DECLARATION).read_text("utf-8"))
    return {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}


Rules = TypeVar("Rules")


def declared(
    folder: Path,
    *,
    rules: Callable[[Term], Rules],
    public: Callable[[Rules], Sequence[Test]],
    hidden: Callable[[Rules, Random, str], Sequence[Test]],
    words: Callable[[Rules], Mapping[str, Any]] = lambda _: {},
    begun: Callable[[Rules], Mapping[str, str]] | None = None,
    asks: Sequence[Asks] = (),
) -> Lab:
    """The lab of a folder, which has the folder's name: what its `lab.toml` says, with the functions that make its texts and tests.

    `rules` are what differs between terms; words and tests follow from them. Their fields are words, too, as in `words_of`, and so are the
    texts that `lab.toml` has for their values, as in `texts_of`. `hidden` gives tests like the public ones, for a source of numbers that is
    the seed's, and the seed as a text; that they are hidden, and are named so, is added here. `asks` make questions of what a submission
    did.
    """
    plain = declaration(folder)
    texts = plain.pop("words", {})

    def all_words(term: Term) -> Mapping[str, Any]:
        known = {**words_of(rules(term)), **words(rules(term))}
        return known | texts_of(texts, rules(term), known)

    def all_hidden(term: Term, seed: int) -> Sequence[Test]:
        tests = hidden(rules(term), Random(f"{seed}/{folder.name}"), str(seed))
        return tuple(replace(test, name=f"hidden: {test.name}", hidden=True) for test in tests)

    return Lab(
        name=folder.name,
        folder=folder,
        words=all_words,
        public=lambda term: public(rules(term)),
        hidden=all_hidden,
        begun=None if begun is None else lambda term: begun(rules(term)),
        asks=asks,
        rules=rules,
        **plain,
    )
