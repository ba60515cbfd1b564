"""The server: on the loopback interface, for pages of its own alone, from memory; the source is read and written where it lies.

Who may reach this machine's loopback interface may read. Who writes the source must also know the key that the printed address has.
"""

from __future__ import annotations

import errno
from http import HTTPStatus
from pathlib import Path
from secrets import compare_digest
from threading import Condition

import msgspec

from tpucc.diagnostics import Diagnostic, Error, UsageError, reason
from tpucc.watch.editing import GONE, ChangedError, Edited, GoneError
from tpucc.watch.loopback import HEADERS, LARGEST, PLAIN, LoopbackHandler, LoopbackServer
from tpucc.watch.page import page
from tpucc.watch.site import View

PORTS = range(8700, 8720)
"""Tried in this order when no port is asked for; past them the system chooses."""
PAGE, SOURCE, EVENTS = "/", "/source", "/events"
KEY = "X-Tpucc-Key"
POLICY = "default-src 'self' 'unsafe-inline' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
"""The page may speak with this server and nobody else; no other page may frame it."""
HEARTBEAT = 15.0
"""Seconds after which a page hears something even when there is nothing new: so that the end of a connection is noticed."""


class Board:
    """The view that is shown now. One thread sets it; the threads of the requests read it and wait for the next."""

    def __init__(self, view: View) -> None:
        self._changed = Condition()
        self._view = view
        self._number = 0
        self._open = True

    @property
    def view(self) -> View:
        """The view that is shown now."""
        return self._view

    def show(self, view: View) -> None:
        """Puts up another view."""
        with self._changed:
            self._view = view
            self._number += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the waiting of all."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def after(self, number: int, seconds: float) -> tuple[int, View] | None:
        """The view after the `number`th, as soon as there is one; the same after these seconds; None once the board is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._number != number or not self._open, seconds)
            return (self._number, self._view) if self._open else None


class Server(LoopbackServer):
    """Serves a board, and the page with the source at `path`. Raises `OSError` when the port can't be had."""

    def __init__(self, board: Board, path: Path, port: int) -> None:
        self.board, self.source = board, Edited(path)
        self.page = page(path.name)
        super().__init__(port, Handler)

    @property
    def address(self) -> str:
        """With the key that lets the page save."""
        return f"{self.root}?key={self.secret}"

    def stop(self) -> None:
        """Ends `serve_forever` in its thread, and the requests that wait for news."""
        self.board.close()
        super().stop()


class Handler(LoopbackHandler):
    """Answers one request: the page and its parts, a path that the view has, the source, or the events."""

    server: Server
    common = HEADERS | {"Content-Security-Policy": POLICY}

    def do_GET(self) -> None:
        if not self.names_us:
            return self.refuse("tpucc watch answers to localhost alone")
        if self.place == EVENTS:
            return self._events()
        if self.place == SOURCE:
            return self._source(None)
        return self.answer(self.server.page.get(self.place) or self.server.board.view.contents.get(self.place))

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        if self.place != SOURCE:
            return self.do_POST()
        if self._saves and (self.length is None or self.length > LARGEST):
            self.close_connection = True
            return self.send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, PLAIN, f"not saved: at most {LARGEST:,} bytes are\n".encode())
        text = self.request_body(PLAIN)
        if text is None or not self._saves:
            return self.refuse("not saved: open the address that tpucc watch printed when it started")
        return self._source(text)

    def do_POST(self) -> None:
        methods = "GET, HEAD, PUT" if self.place == SOURCE else "GET, HEAD"
        self.send(HTTPStatus.METHOD_NOT_ALLOWED, PLAIN, f"only {methods}\n".encode(), {"Allow": methods})

    do_DELETE = do_PATCH = do_OPTIONS = do_POST

    @property
    def _saves(self) -> bool:
        """Whether who asks knows the key."""
        return compare_digest(self.headers.get(KEY, "").encode(), self.server.secret.encode())

    def _source(self, text: bytes | None) -> None:
        """The source as it is, or after it has been written; a tag says which bytes it has, and `Allow` whether who asks may write it."""
        source, allowed = self.server.source, {"Allow": "GET, HEAD, PUT" if self._saves else "GET, HEAD"}
        try:
            body, tag = source.read() if text is None else source.write(text, self.headers.get("If-Match", ""))
        except ChangedError as error:
            return self.send(HTTPStatus.PRECONDITION_FAILED, PLAIN, f"{error}\n".encode())
        except GoneError as error:
            return self.send(HTTPStatus.NOT_FOUND, PLAIN, f"{error}\n".encode(), {"ETag": GONE, **allowed})
        except Error as error:
            return self.send(HTTPStatus.CONFLICT, PLAIN, f"{error.diagnostics[0].message}\n".encode())
        return self.send(HTTPStatus.OK, PLAIN, body, {"ETag": tag, **allowed})

    def _events(self) -> None:
        """The state now and after every change, as server-sent events, until the reader goes or the server stops."""
        self.head(HTTPStatus.OK, {"Content-Type": "text/event-stream"})
        number = -1
        while self.command == "GET" and (found := self.server.board.after(number, HEARTBEAT)) is not None:
            news = found[0] != number
            number, view = found
            self.wfile.write(b"event: state\ndata: " + msgspec.json.encode(view.state) + b"\n\n" if news else b":\n\n")


def open_server(board: Board, path: Path, port: int | None) -> Server:
    """A server for the model at `path` on this port, or without one on the next free port of `PORTS`. Raises `UsageError` E0540 when the
    port can't be had."""
    if port is not None:
        try:
            return Server(board, path, port)
        except OSError as error:
            message = f"can't listen on port {port}: {reason(error)}"
            mend = "without --port, tpucc takes one that is free"
            raise UsageError(Diagnostic("E0540", message, help=(mend,))) from None
    for candidate in PORTS:
        try:
            return Server(board, path, candidate)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    return Server(board, path, 0)
