"""Where things come from and what is wrong with them.

Every stage speaks about the source through the types of this module: a `Span` is a stretch of one source file, an `Origin` says which
spans a node or an instruction comes from, and a `Diagnostic` is one message to the person who wrote the source.
"""

from __future__ import annotations

import errno
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

TAB = 4
MAX_LINE = 160
LONG_WORD, LONGEST = 1000, 12_000
"""Characters of a word, and of a message or a help; what the user's code raised has `plugins.printed.KEPT` of them."""
_LONG = re.compile(rf"(\S{{{MAX_LINE}}})\S{{{LONG_WORD - MAX_LINE},}}")
ALIKE = 0.6
"""The share of letters that two words have in common, in order, if one may be meant by the other."""
_MISMATCH = re.compile(r"Expected `(?P<expected>[^`]+)`(?P<more>[^`]*?)(?:, got `(?P<found>\w+)`)?")
_FIELD = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>[^`]*)`")
_KINDS: Mapping[str, str] = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
_UNREADABLE: Mapping[str, str] = {
    r"Input data was truncated": "ends too early",
    r"JSON is malformed: .*\(byte (\d+)\)": "is no JSON from byte {} on",
    r"(?:Number|Integer value) out of range": "is too large a number",
    r"Invalid enum value '(.{0,40}).*'": "can't be {}",
    r"Invalid UTF-8 encoded string": "has text that is not UTF-8",
    r"Encoding objects of type (\S+) is unsupported": "holds a value of Python's type {}",
}
"""In words, what msgspec says of values that it can't read or write."""
_SPAN = re.compile(r"(\d{1,20}):(\d{1,20})-(?:(\d{1,20}):)?(\d{1,20})", re.ASCII)
_REASONS: Mapping[int, str] = {
    errno.ENOENT: "no such file",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EISDIR: "is a directory",
    errno.ENOTDIR: "not a directory",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your share of the disk is full",
    errno.EFBIG: "a file may not be so large here",
    errno.EROFS: "the disk can only be read",
    errno.ELOOP: "its links lead in a circle",
}


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of a source file: one-based lines and columns (in characters), the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        end = str(self.end_column) if self.end_line == self.line else f"{self.end_line}:{self.end_column}"
        return f"{self.line}:{self.column}-{end}"

    def to(self, last: Span) -> Span:
        """From the start of this one to the end of another."""
        return Span(self.line, self.column, last.end_line, last.end_column)

    @staticmethod
    def parse(text: str) -> Span | None:
        """The span whose text this is; None when it is none's."""
        match = _SPAN.fullmatch(text)
        if match is None:
            return None
        line, column, end_line, end = match.groups()
        return Span(int(line), int(column), int(end_line or line), int(end))


@lru_cache(maxsize=2)
def _lines(text: str) -> list[str]:
    """The lines of a text, which are asked for one after the other."""
    return text.split("\n")


@dataclass(frozen=True, slots=True)
class Source:
    """A source file as it was read: the name that messages show, and its text. Carriage returns alone end lines, as on old Macs."""

    name: str
    text: str

    def __post_init__(self) -> None:
        if "\r" in self.text:
            object.__setattr__(self, "text", re.sub(r"\r(?!\n)", "\n", self.text))

    def line(self, number: int) -> str:
        """The text of a one-based line, without its end; empty past the end of the file."""
        lines = _lines(self.text)
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""

    def stretch(self, span: Span) -> str:
        """The text of a span."""
        lines = [self.line(number) for number in range(span.line, span.end_line + 1)]
        lines[-1] = lines[-1][: span.end_column - 1]
        return "\n".join([lines[0][span.column - 1 :], *lines[1:]])


@dataclass(frozen=True, slots=True)
class Origin:
    """The places of the source that a node, a tile or an instruction comes from.

    `spans` has the primary place first (a fusion keeps the places of all that it fused). `calls` are the calls that led to the
    primary place inside a `def`, the innermost first (before them, a fusion keeps those that led to its other places). `made_by` names the
    pass that made a node the source doesn't contain.
    """

    spans: tuple[Span, ...] = ()
    calls: tuple[Span, ...] = ()
    made_by: str = ""

    def __bool__(self) -> bool:
        return bool(self.spans or self.made_by)

    @property
    def line(self) -> int:
        """The line of `call`; 0 when the source has none."""
        return self.call[0].line if self.call else 0

    def after(self, name: str) -> str:
        """A name with its line behind it, as notes have it: `h.25 (line 49)`; alone where the source has none."""
        return f"{name} (line {self.line})" if self.line else name

    @property
    def call(self) -> tuple[Span, ...]:
        """The outermost call that led to the primary place, or that place itself; empty when the source has none.

        Two layers made by one `def` share their primary place, and differ in this.
        """
        return self.calls[-1:] or self.spans[:1]

    @property
    def lines(self) -> frozenset[int]:
        """Every source line of this origin, the calls that led there among them."""
        return frozenset(n for s in self.spans + self.calls for n in range(s.line, s.end_line + 1))

    def labels(self, text: str = "") -> tuple[Label, ...]:
        """The primary place as a diagnostic shows it; empty when the source has none."""
        return tuple(Label(span, text) for span in self.spans[:1])

    def trail(self, text: str = "") -> tuple[Label, ...]:
        """The primary place, with `text`, and the calls that led there, the innermost first."""
        return (*self.labels(text), *(Label(call, "in this call") for call in self.calls))

    def merged(self, *others: Origin) -> Origin:
        """The origin of a fusion: the places of all, this one's first; the calls of all, this one's last, as `call` is one of them."""
        spans = dict.fromkeys(span for origin in (self, *others) for span in origin.spans)
        calls = dict.fromkeys(call for origin in others for call in origin.calls if call not in self.calls)
        return Origin(tuple(spans), (*calls, *self.calls), self.made_by)

    def by(self, name: str) -> Origin:
        """The origin of a node that the pass `name` makes on behalf of this one."""
        return Origin(self.spans, self.calls, name)


@dataclass(frozen=True, slots=True)
class Label:
    """A place with a few words about it: `in this call`, `x is f32[64, 128]`. It lies in `source` where the message speaks of two files."""

    span: Span
    text: str = ""
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message: a stable code, what is wrong, where, and what would help.

    `labels` has the primary place first; the others are shown as notes (the calls that led there, an earlier definition).
    """

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    help: tuple[str, ...] = ()
    severity: str = "error"

    def __post_init__(self) -> None:
        """A help that says nothing is left out, and what nobody reads to its end is cut: names in files may have megabytes."""
        object.__setattr__(self, "help", tuple(map(_cut, filter(None, self.help))))
        object.__setattr__(self, "message", _cut(self.message))

    @property
    def span(self) -> Span | None:
        return self.labels[0].span if self.labels else None

    def render(self, source: Source | None = None) -> str:
        """The message as text: position, code, the line with carets, notes, help."""
        return "\n".join(_rendered(self, source))


def _cut(text: str) -> str:
    if len(text) > LONG_WORD:
        text = _LONG.sub(r"\1…", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"


class LineError(Exception):
    """A line of a text form that can't be read; `diagnostic` says why. The reader of the whole text collects them."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Error(Exception):
    """The base of all errors of tpucc. `exit_status` is the command line's (see the interface reference).

    The errors are tpucc's by name: a traceback says `tpucc.PluginError`, which is what one catches.
    """

    __module__ = "tpucc"
    exit_status = 5

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls.__module__ = Error.__module__

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic], source: Source | None = None) -> None:
        self.diagnostics = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.source = source
        super().__init__(self.render())

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """For other processes."""
        return type(self), (self.diagnostics, self.source)

    def render(self, most: int | None = None) -> str:
        """All diagnostics, or the first `most` of them, as text. A help that several of one code have stands at the first."""
        said: set[tuple[str, str]] = set()
        parts = []
        for found in self.diagnostics[:most]:
            fresh = tuple(help for help in found.help if (found.code, help) not in said)
            said.update((found.code, help) for help in fresh)
            parts.append(replace(found, help=fresh).render(self.source))
        return "\n\n".join(parts)

    def at(self, labels: Iterable[Label] = (), source: Source | None = None) -> Self:
        """The same error with these places and this source, where it has none."""
        places = tuple(labels)
        return type(self)([found if found.labels else replace(found, labels=places) for found in self.diagnostics], self.source or source)

    def with_help(self, more: Iterable[str]) -> Self:
        """The same error with more help at its first diagnostic."""
        first, *others = self.diagnostics
        return type(self)([replace(first, help=(*first.help, *more)), *others], self.source)


class CompileError(Error):
    """The source is wrong; every diagnostic has its span."""

    exit_status = 1


class CheckError(Error):
    """Two answers that must be equal are not."""

    exit_status = 1


class TrainingError(Error):
    """A training that can't go on: a value has become infinite or NaN."""

    exit_status = 1


class UsageError(Error):
    """A wrong request: an option, a parameter, a file that is missing or can't be read."""

    exit_status = 2


class ProgramError(Error):
    """A binary, a listing, a graph or a target in text form that is malformed, or a program that the verifier refuses."""

    exit_status = 3


class InputError(Error):
    """Weights, calibration or inputs that are malformed or don't fit: keys, shapes, types, NaN."""

    exit_status = 3


class LimitError(Error):
    """A limit of resources: the machine's memories, or tpucc's own bounds."""

    exit_status = 4


class PluginError(Error):
    """Code that the user brought, a pass or a stage, failed or made something wrong. The source is its file."""

    exit_status = 1


class InternalError(Error):
    """A fault in tpucc."""

    exit_status = 5


def misfit(error: Exception) -> str:
    """An error of msgspec about a file's values, in our words: `mxu must be an integer, not a string`."""
    if isinstance(error, UnicodeError):
        return "it has text that is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    text, _, place = str(error).partition(" - at ")
    where = place.strip("`").removeprefix("$").removeprefix(".")
    if found := _FIELD.fullmatch(text):
        inside = f" in {where}" if where else ""
        return f"{found['name']} is missing{inside}" if "missing" in found["what"] else f"{where or 'it'} has no field {found['name']}"
    if found := _MISMATCH.fullmatch(text):
        expected = listed([_KINDS.get(kind, kind) for kind in found["expected"].split(" | ")], "or")
        other = f", not {_KINDS.get(found['found'], found['found'])}" if found["found"] else ""
        return f"{where or 'it'} must be {expected}{found['more']}{other}"
    for pattern, words in _UNREADABLE.items():
        if found := re.fullmatch(pattern, text, re.DOTALL):
            return f"{where or 'it'} {words.format(*found.groups())}"
    return f"{where}: {text}" if where else text


def did_you_mean(word: str, candidates: Iterable[str], alike: float = ALIKE) -> str:
    """`did you mean h1?`, or nothing when no candidate is close."""
    close = nearest(word, candidates, alike)
    return f"did you mean {printable(close)}?" if close else ""


def nearest(word: str, candidates: Iterable[str], alike: float = ALIKE) -> str:
    """The candidate that is closest to a word; empty when none is close: `alike` is the least share of letters that both have.

    A text longer than a line is no word.
    """
    if len(word) > MAX_LINE:
        return ""
    from difflib import get_close_matches  # imported only when something is wrong

    known = sorted(set(candidates))
    close = [other for other in known if other.lower() == word.lower()] or get_close_matches(word, known, n=1, cutoff=alike)
    return close[0] if close else ""


def nearest_few(word: str, candidates: Iterable[str], most: int) -> list[str]:
    """The candidates that are most like a word, however little that is; the most alike first."""
    from difflib import get_close_matches  # imported only when something is wrong

    return get_close_matches(word[:MAX_LINE], sorted(set(candidates)), n=most, cutoff=0.0)


def printable(text: str) -> str:
    """`text` with control and bidirectional characters escaped, safe for a terminal."""
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c for c in text)


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 row`, `1,000 rows`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def some(names: Sequence[str], most: int) -> str:
    """The first few of many names: `fc1, fc2 and 3 others`."""
    return listed([*names[:most], *([counted(len(names) - most, "other")] if len(names) > most else [])])


def reason(error: OSError) -> str:
    """Why a file can't be had, in words that are the same on every system: `no such file`; else what the system says."""
    return _REASONS.get(error.errno or 0) or error.strerror or str(error)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _rendered(diagnostic: Diagnostic, source: Source | None) -> Iterable[str]:
    head = f"{diagnostic.severity} {printable(diagnostic.code)}: {printable(diagnostic.message)}"
    span = diagnostic.span
    if span is None or source is None:
        yield f"{printable(source.name)}: {head}" if source else head
    else:
        yield f"{printable(source.name)}:{span.line}:{span.column}: {head}"
        yield from _excerpt(source, diagnostic.labels[0])
        for label in diagnostic.labels[1:]:
            where = label.source or source
            yield f"{printable(where.name)}:{label.span.line}:{label.span.column}: note: {printable(label.text)}"
            yield from _excerpt(where, Label(label.span))
    for text in diagnostic.help:
        yield f"help: {printable(text)}"


def _excerpt(source: Source, label: Label) -> Iterable[str]:
    """The line with carets under the span; a span over several lines is marked to the end of its first."""
    span, line = label.span, source.line(label.span.line)
    end = span.end_column if span.end_line == span.line else len(line) + 1
    start = min(span.column, len(line) + 1)
    before, marked = line[: start - 1], line[start - 1 : max(end, start + 1) - 1]
    lead, body, after = _shown(before), _shown(marked), _shown(line[start - 1 + len(marked) :])
    if len(lead) + len(body) + len(after) > MAX_LINE:
        lead, body, after = _cut_left(lead), body[: MAX_LINE // 2], after[: MAX_LINE // 4]
    gutter = f"{span.line:>4} | "
    yield (gutter + lead + body + after).rstrip()
    text = f" {printable(label.text)}" if label.text else ""
    yield " " * (len(gutter) - 2) + "| " + " " * columns(lead) + "^" * max(1, columns(body)) + text


def _shown(text: str) -> str:
    return printable(text.replace("\t", " " * TAB))


def _cut_left(text: str) -> str:
    return text if len(text) <= MAX_LINE // 4 else "…" + text[-MAX_LINE // 4 :]


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)
