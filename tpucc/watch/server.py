"""The server: on the loopback interface, from memory, and for pages of its own alone."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from threading import Condition
from urllib.parse import unquote

import msgspec

from tpucc.diagnostics import Diagnostic, UsageError, reason
from tpucc.watch.site import PLAIN, Content, View

LOOPBACK = "127.0.0.1"
NAMES = ("localhost", LOOPBACK, "[::1]")
PORTS = range(8700, 8720)
"""Tried in this order when no port is asked for; past them the system chooses."""
EVENTS = "/events"
HEARTBEAT = 15.0
"""Seconds after which a page hears something even when there is nothing new: so that the end of a connection is noticed."""
PATIENCE = 30.0
"""Seconds that a request may take to arrive, or an answer to be taken."""
SOURCES = "default-src 'self' 'unsafe-inline' data: blob:"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{SOURCES}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""With every answer. The page may speak with this server and nobody else; no other page may frame or read it."""


class Board:
    """The view that is shown now. One thread sets it; the threads of the requests read it and wait for the next."""

    def __init__(self, view: View) -> None:
        self._changed = Condition()
        self._view = view
        self._number = 0
        self._open = True

    @property
    def view(self) -> View:
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


class Server(ThreadingMixIn, TCPServer):
    """Serves a board on a port of the loopback interface; port 0 is any free one. Raises `OSError` when it can't be had."""

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would share the port with whoever has it
    request_queue_size = 64

    def __init__(self, board: Board, port: int) -> None:
        self.board = board
        super().__init__((LOOPBACK, port), Handler)
        self.port = int(self.server_address[1])
        self.hosts = frozenset(f"{name}:{self.port}" for name in NAMES) | (frozenset(NAMES) if self.port == 80 else frozenset())

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/"

    def stop(self) -> None:
        """Ends `serve_forever` in its thread, and the requests that wait for news."""
        self.board.close()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that goes away in the middle isn't an error of ours; other errors are reported as usual."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """Answers one request: a path that the view has, or the events."""

    server: Server
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._answer(whole=True)

    def do_HEAD(self) -> None:
        self._answer(whole=False)

    def do_POST(self) -> None:
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, Content(PLAIN, b"only GET and HEAD\n"), whole=True)

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_POST

    def version_string(self) -> str:
        return "tpucc"

    def log_message(self, format: str, *args: object) -> None:
        """Requests aren't worth a line at the terminal."""

    def _answer(self, whole: bool) -> None:
        """A page elsewhere whose name was pointed at this address still says its own name as the host, and is refused (DNS rebinding)."""
        if not allowed(self.headers.get_all("Host", []), self.server.hosts):
            return self._send(HTTPStatus.FORBIDDEN, Content(PLAIN, b"tpucc watch answers to localhost alone\n"), whole)
        path = unquote(self.path.partition("?")[0])
        if path == EVENTS:
            return self._events(whole)
        content = self.server.board.view.contents.get(path)
        if content is None:
            return self._send(HTTPStatus.NOT_FOUND, Content(PLAIN, b"there is nothing here\n"), whole)
        return self._send(HTTPStatus.OK, content, whole)

    def _send(self, status: HTTPStatus, content: Content, whole: bool) -> None:
        self._head(status, content.type)
        self.send_header("Content-Length", str(len(content.body)))
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if whole:
            self.wfile.write(content.body)

    def _events(self, whole: bool) -> None:
        """The state now and after every change, as server-sent events, until the reader goes or the server stops."""
        self._head(HTTPStatus.OK, "text/event-stream")
        self.end_headers()
        number = -1
        while whole and (found := self.server.board.after(number, HEARTBEAT)) is not None:
            news = found[0] != number
            number, view = found
            self.wfile.write(b"event: state\ndata: " + msgspec.json.encode(view.state) + b"\n\n" if news else b":\n\n")

    def _head(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in HEADERS.items():
            self.send_header(name, value)


def open_server(board: Board, port: int | None) -> Server:
    """A server on this port, or without one on the next free port of `PORTS`. Raises `UsageError` E0540 when the port can't be had."""
    if port is not None:
        try:
            return Server(board, port)
        except OSError as error:
            message = f"can't listen on port {port}: {reason(error)}"
            mend = "without --port, tpucc takes one that is free"
            raise UsageError(Diagnostic("E0540", message, help=(mend,))) from None
    for candidate in PORTS:
        try:
            return Server(board, candidate)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    return Server(board, 0)


def allowed(hosts: Sequence[str], known: frozenset[str]) -> bool:
    return len(hosts) == 1 and hosts[0].strip().lower() in known
