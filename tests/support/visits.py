"""Opening pages from disk, and keeping a record of all that a self-contained page must not do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Request, WebError

COMPLAINTS = ("error", "warning", "assert")
"""Kinds of console messages that are faults."""


@dataclass
class Record:
    """What the pages of one browser context did: every console message, and as faults whatever a self-contained page never does."""

    allowed: set[str] = field(default_factory=set)
    console: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    paused: bool = False
    """Whether no faults are recorded."""

    def clear(self) -> None:
        """As if nothing had been done or allowed."""
        self.paused = False
        for part in (self.allowed, self.console, self.faults):
            part.clear()

    def pause(self) -> None:
        """Until it is cleared nothing is a fault, nor was anything."""
        self.faults.clear()
        self.paused = True

    def watch(self, context: BrowserContext) -> None:
        """Records from now on, for all pages of `context`, also those that a page opens."""
        context.on("console", self._said)
        context.on("weberror", self._thrown)
        context.on("request", self._requested)
        context.on("dialog", self._asked)
        context.on("page", self._opened)

    def _fault(self, fault: str) -> None:
        if not self.paused:
            self.faults.append(fault)

    def _said(self, message: ConsoleMessage) -> None:
        self.console.append(message.text)
        if message.type in COMPLAINTS:
            self._fault(f"console {message.type}: {message.text}")

    def _thrown(self, error: WebError) -> None:
        self._fault(f"page error: {error.error}")

    def _requested(self, request: Request) -> None:
        if address_of(request.url) not in self.allowed:
            self._fault(f"request: {request.method} {request.url[:200]}")

    def _asked(self, dialog: Dialog) -> None:
        self._fault(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _opened(self, page: Page) -> None:
        page.on("websocket", lambda socket: self._fault(f"socket: {socket.url}"))
        page.on("crash", lambda _: self._fault("the page crashed"))


def address_of(url: str) -> str:
    """`url` without its fragment."""
    return url.partition("#")[0]


def enter(page: Page, field: str, text: str) -> None:
    """Types `text` into an empty or filled field; the page has heard of it then, as it need not have when `fill` ends."""
    page.fill(field, text)
    page.wait_for_function("([field, text]) => document.querySelector(field).value === text", arg=[field, text])


def settle(page: Page) -> None:
    """Returns when two frames have been drawn, and with them all that the page has done until now has been recorded."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")
