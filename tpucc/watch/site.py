"""What the server shows of an outcome: its pages and files, by their paths."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import msgspec

from tpucc.diagnostics import Diagnostic, counted
from tpucc.plain_errors import plain_diagnostic
from tpucc.see.kit import page_files
from tpucc.see.palette import KINDS, Kind
from tpucc.see.svg import Markup, tag
from tpucc.watch.build import Built, Failed, Outcome
from tpucc.watch.loopback import HTML, TYPES, Content, content_of
from tpucc.watch.messages import Messages, explanations, messages_page, source_pane

FRONT, REPORT, MESSAGES, CHANGES = "/view", "/report.html", "/messages", "/changes"
DIAGNOSTICS, ICON = "/diagnostics.json", "/favicon.ico"
END = b"</body>"


@dataclass(frozen=True, slots=True)
class State:
    """The message to an open page: the digests of the current pages, by which it knows whether it is out of date, and its notices: `change`
    is what made the difference to the version before."""

    pages: Mapping[str, str]
    errors: int = 0
    warnings: int = 0
    compiling: bool = False
    change: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """All that the server has to show of a model at one time: contents by path, and the state."""

    contents: Mapping[str, Content]
    state: State


def waiting(name: str) -> View:
    """Before the first compilation has ended."""
    pages = {FRONT: messages_page(Messages(f"{name} is being compiled")).encode()}
    return _view(pages, {DIAGNOSTICS: b"[]"}, State({}, compiling=True))


def compiling(view: View) -> View:
    """The pages of `view`, while the next pages are made."""
    return replace(view, state=replace(view.state, compiling=True))


def view_of(name: str, outcome: Outcome, good: Built | None) -> View:
    """The pages of an outcome. `good` is the last good compilation: this one, an earlier one, or none yet.

    The front page is the report. While there are errors it is the last good one, in which they stand at their lines of the source and the
    rest is dimmed; without one it is the messages. The files are those of the last good compilation, and so is the comparison with the one
    before it.
    """
    failed = isinstance(outcome, Failed)
    messages = outcome.error.diagnostics if isinstance(outcome, Failed) else outcome.warnings
    given = _messages(name, outcome, messages, good)
    page = messages_page(given).encode()
    files = {} if good is None else {f"/{file}": content for file, content in good.files.items()}
    report = files.pop(REPORT, None)
    front = page if report is None else report
    if failed and report is not None:
        front = _before_end(report, tag("template", source_pane(given), id="tpucc-errors"))
    pages = {MESSAGES: page, FRONT: front}
    pages |= {} if report is None else {REPORT: report}
    pages |= {CHANGES: good.change.page.encode()} if good and good.change else {}
    texts = {path: text.encode() for path, text in explanations(messages)}
    texts[DIAGNOSTICS] = msgspec.json.encode([plain_diagnostic(message, outcome.source) for message in messages])
    change = outcome.change.cause if isinstance(outcome, Built) and outcome.change else ""
    state = State({}, errors=len(messages) if failed else 0, warnings=0 if failed else len(messages), change=change)
    return _view(pages, files | texts, state)


def followed(page: bytes, place: str) -> bytes:
    """The page with the script that makes it follow the source, in front of the end of its body. The page on the disk has none.

    The script's elements have the colours of the page: the variables of `tpucc.see.palette`, which all pages have.
    """
    style, script = _script()
    data = {"data-place": place, "data-digest": digest(page)}
    return _before_end(page, Markup(tag("style", style) + tag("script", script, attributes=data)))


def _before_end(page: bytes, added: Markup) -> bytes:
    """The page with something more at the end of its body."""
    before, end, after = page.rpartition(END)
    return before + added.encode() + end + after if end else page + added.encode()


def digest(page: bytes) -> str:
    """Pages of the same bytes have the same digest, in one run of the server and in the next."""
    return hashlib.sha256(page).hexdigest()[:16]


def _view(pages: Mapping[str, bytes], files: Mapping[str, bytes], state: State) -> View:
    contents = {path: content_of(path, body) for path, body in files.items()}
    contents |= {path: Content(HTML, followed(page, path)) for path, page in pages.items()}
    contents[ICON] = Content(TYPES[".svg"], ICON_PICTURE)
    return View(contents, replace(state, pages={path: digest(page) for path, page in pages.items()}))


def _messages(name: str, outcome: Outcome, messages: Sequence[Diagnostic], good: Built | None) -> Messages:
    if isinstance(outcome, Built):
        heading = f"{name}: {counted(len(messages), 'warning')}" if messages else f"{name}: no errors and no warnings"
        return Messages(heading, outcome.summary, messages, outcome.source, outcome.notes, {FRONT: "the report"})
    lead = "" if good is None else f"The report is that of the last version that compiled: {good.summary}."
    links = {} if good is None else {REPORT: "the last good report"}
    return Messages(f"{name}: {counted(len(messages), 'error')}", lead, messages, outcome.source, links=links)


@cache
def _script() -> tuple[Markup, Markup]:
    """The style sheet and the script that the server adds; both are ours, and end no element."""
    return Markup(page_files(__package__, "watch.css")), Markup(page_files(__package__, "watch.js"))


ICON_PICTURE = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 2"><path fill="{KINDS[Kind.MATRIX].line}" d="M0 0h1v1H0zM1 1h1v1H1z"/></svg>'
).encode()
