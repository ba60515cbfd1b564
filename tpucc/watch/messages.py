"""The page of messages: the source with every error and warning at its line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tpucc.diagnostics import Diagnostic, Label, Source, printable
from tpucc.explain.codes import explain
from tpucc.see.kit import page_files, shell
from tpucc.see.svg import NOTHING, Markup, escaped, joined, tag

EXPLAIN = "/explain/"


@dataclass(frozen=True, slots=True)
class Remark:
    """A mark in a line, from `start` to `end` (in characters, from zero), the words at its carets, and the message that goes with it."""

    start: int
    end: int
    kind: str
    words: str
    message: Diagnostic | None


@dataclass(frozen=True, slots=True)
class Messages:
    """All that the page shows: a heading, a sentence under it, the messages and the source they speak of, notes, and links as words by
    address, to other views of the same model: the page's script takes the selection along."""

    heading: str
    lead: str = ""
    messages: Sequence[Diagnostic] = ()
    source: Source | None = None
    notes: Sequence[str] = ()
    links: Mapping[str, str] = field(default_factory=dict)


def messages_page(given: Messages) -> str:
    """The page as HTML: messages without a place first, the others at their lines."""
    links = joined(tag("a", escaped(words), attributes={"data-keep-hash": "", "href": link}) for link, words in given.links.items())
    head = [tag("h1", _text(given.heading)), tag("p", _text(given.lead)) if given.lead else NOTHING, tag("nav", links or Markup(" "))]
    loose, listing = _divided(given)
    boxes = [*map(_box, loose), *(tag("div", _text(note), class_="box") for note in given.notes)]
    body = joined([tag("header", *head), tag("main", *boxes, listing, Markup("\n"), data_messages="")])
    return shell(given.heading, body, style=page_files(__package__, "messages.css"))


def source_pane(given: Messages) -> Markup:
    """What a report has in place of its source while there are errors: messages without a place, and the source with the others."""
    loose, listing = _divided(given)
    head = tag("p", tag("strong", _text(given.heading)), Markup(" "), _text(given.lead), class_="lead")
    return joined([head, *map(_box, loose), listing])


def _divided(given: Messages) -> tuple[Sequence[Diagnostic], Markup]:
    """The messages without a place, which all are where there is no source; and the source with the others at their lines."""
    if given.source is None:
        return given.messages, NOTHING
    return [message for message in given.messages if message.span is None], _listing(given.source, given.messages)


def explanations(messages: Iterable[Diagnostic]) -> Iterator[tuple[str, str]]:
    """The addresses that the boxes link to, and the text that each has."""
    for code in dict.fromkeys(message.code for message in messages):
        text = explain(code)
        if text is not None:
            yield EXPLAIN + code, text


def remarks(source: Source, messages: Iterable[Diagnostic]) -> dict[int, list[Remark]]:
    """For each line its marks, from left to right: the message at its first place, notes at the others."""
    found: dict[int, list[Remark]] = defaultdict(list)
    for message in messages:
        for number, label in enumerate(message.labels):
            first = number == 0
            words = label.text if first else f"note: {label.text}"
            found[label.span.line].append(_remark(source, label, message.severity if first else "note", words, message if first else None))
    return {line: sorted(own, key=lambda remark: remark.start) for line, own in found.items()}


def _remark(source: Source, label: Label, kind: str, words: str, message: Diagnostic | None) -> Remark:
    """A span over several lines is marked to the end of its first, as at the terminal."""
    length = len(source.line(label.span.line))
    start = min(label.span.column - 1, length)
    end = label.span.end_column - 1 if label.span.end_line == label.span.line else length
    return Remark(start, max(start, min(end, length)), kind, words, message)


def _listing(source: Source, messages: Sequence[Diagnostic]) -> Markup:
    """All lines; under those that are marked, carets and the messages."""
    marked = remarks(source, messages)
    lines = enumerate(source.text.removesuffix("\n").split("\n"), 1)
    return tag("div", joined(_line(number, line.rstrip("\r"), marked.get(number, [])) for number, line in lines), class_="source")


def _line(number: int, text: str, own: Sequence[Remark]) -> Markup:
    code = tag("code", joined(_pieces(text, own)) or Markup(" "))
    row = tag("div", tag("b", escaped(str(number))), code, class_="line marked" if own else "line")
    return joined([row, *(_under(text, remark) for remark in own), Markup("\n")])


def _pieces(text: str, own: Sequence[Remark]) -> Iterator[Markup]:
    """The line, cut where a mark starts or ends."""
    edges = sorted({0, len(text), *(r.start for r in own), *(r.end for r in own)})
    for start, end in pairwise(edges):
        kinds = [r.kind for r in own if r.start <= start and end <= r.end]
        piece = _code(text[start:end])
        yield tag("mark", piece, class_=kinds[0]) if kinds else piece


def _under(text: str, remark: Remark) -> Markup:
    """The carets of a mark, behind the same characters as the mark so that they stand under it, and its message."""
    gap = tag("span", _code(text[: remark.start]), class_="gap") if remark.start else NOTHING
    carets = tag("i", Markup("^" * max(1, remark.end - remark.start)))
    row = tag("div", tag("code", gap, carets, _text(f" {remark.words}")), class_=f"carets {remark.kind}")
    return joined([row, _box(remark.message) if remark.message else NOTHING])


def _box(message: Diagnostic) -> Markup:
    """The message, its code with a link to the explanation, and the help."""
    code = tag("a", escaped(message.code), href=EXPLAIN + message.code) if explain(message.code) else escaped(message.code)
    head = tag("p", tag("strong", escaped(message.severity)), Markup(" "), code, Markup(": "), _text(message.message))
    helps = joined(tag("p", _text(f"help: {text}"), class_="help") for text in message.help)
    return tag("div", head, helps, class_=f"box {message.severity}")


def _text(text: str) -> Markup:
    return escaped(printable(text))


def _code(text: str) -> Markup:
    """Source text: tabs as they are, other control characters as they are written in escapes."""
    return escaped("\t".join(map(printable, text.split("\t"))))
