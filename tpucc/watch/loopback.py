"""A server for the pages of this machine: on the loopback interface, and for requests that name it as their host.

A page elsewhere whose name was pointed at this address still says its own name as the host, and is refused (DNS rebinding).
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import PurePosixPath
from socket import SHUT_RD
from socketserver import TCPServer, ThreadingMixIn
from threading import Thread, Timer
from typing import Self
from urllib.parse import unquote

LOOPBACK = "127.0.0.1"
NAMES = ("localhost", LOOPBACK, "[::1]")
PATIENCE = 30.0
"""Seconds that a request may take to arrive, or an answer to be taken."""
LARGEST = 2**25
"""Bytes that a request may have."""
PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"
HTML = "text/html; charset=utf-8"
_SCRIPT, _BINARY = "text/javascript; charset=utf-8", "application/octet-stream"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": HTML,
    ".js": _SCRIPT,
    ".json": JSON,
    ".memory": _BINARY,
    ".mjs": _SCRIPT,
    ".svg": "image/svg+xml",
    ".tpub": _BINARY,
    ".wasm": "application/wasm",
    ".whl": _BINARY,
    ".zip": _BINARY,
}
"""Types by the end of a name; all other files are text."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""With every answer: no page of another origin may frame or read it."""


@dataclass(frozen=True, slots=True)
class Content:
    """What is at a path."""

    type: str
    body: bytes


def content_of(name: str, body: bytes) -> Content:
    """A file of this name, with the type that it has by it."""
    return Content(TYPES.get(PurePosixPath(name).suffix, PLAIN), body)


class LoopbackServer(ThreadingMixIn, TCPServer):
    """Listens on a port of the loopback interface; port 0 is any free one. Raises `OSError` when it can't be had.

    Other users of the machine reach it too. Only who has been told the address knows the `secret`.
    """

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would share the port with whoever has it
    request_queue_size = 64

    def __init__(self, port: int, handler: type[LoopbackHandler]) -> None:
        super().__init__((LOOPBACK, port), handler)
        self.port = int(self.server_address[1])
        self.root = f"http://{LOOPBACK}:{self.port}/"
        self.secret = secrets.token_urlsafe(16)
        self.hosts = frozenset(f"{name}:{self.port}" for name in NAMES) | (frozenset(NAMES) if self.port == 80 else frozenset())

    @contextmanager
    def serving(self, poll: float = 0.5) -> Iterator[Self]:
        """Answers in a thread of its own until the body ends, or `stop` is called; looks every `poll` seconds whether that is so."""
        thread = Thread(target=self.serve_forever, args=(poll,), name="server", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stop()
            thread.join()

    def stop(self) -> None:
        """Ends `serve_forever` in its thread."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that goes away in the middle isn't an error of ours; other errors are reported as usual."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class LoopbackHandler(BaseHTTPRequestHandler):
    """What the answers of both servers have in common."""

    server: LoopbackServer
    timeout = PATIENCE
    common: Mapping[str, str] = HEADERS
    """Headers of every answer."""

    def setup(self) -> None:
        super().setup()
        self._late = Timer(self.timeout, self._end_request)  # the socket's own limit is of the time between two bytes
        self._late.daemon = True
        self._late.start()

    def finish(self) -> None:
        self._late.cancel()
        super().finish()

    def _end_request(self) -> None:
        with suppress(OSError):  # it is over already
            self.connection.shutdown(SHUT_RD)

    @property
    def place(self) -> str:
        """The path that is asked for."""
        return unquote(self.path.partition("?")[0])

    @property
    def known(self) -> bool:
        """Whether the request names this machine as its host."""
        return allowed(self.headers.get_all("Host", []), self.server.hosts)

    def content(self, kind: str) -> bytes | None:
        """What a page of this server sends; None where another page asks, or it is of another type, or too long. Raises
        `ConnectionError` where the page goes away before it has sent all of it."""
        length = self.length
        own = self.headers.get("Origin", "").removeprefix("http://") in self.server.hosts
        if not self.known or not own or self.headers.get("Content-Type") != kind or length is None or length > LARGEST:
            return None
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError(f"{length} bytes were announced, and {len(body)} came")
        return body

    @property
    def length(self) -> int | None:
        """The bytes that the request announces; more than twenty digits of them are no number."""
        length = self.headers.get("Content-Length", "")
        return int(length) if length.isdecimal() and len(length) <= 20 else None

    def head(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        self._late.cancel()
        self.send_response(status)
        for name, value in {**headers, **self.common}.items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, status: HTTPStatus, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer; HEAD has no body."""
        self.head(status, {"Content-Type": kind, "Content-Length": str(len(body))} | dict(headers or {}))
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer(self, content: Content | None) -> None:
        """What is at the path; None is that nothing is."""
        if content is None:
            return self.send(HTTPStatus.NOT_FOUND, PLAIN, b"there is nothing here\n")
        return self.send(HTTPStatus.OK, content.type, content.body)

    def refuse(self, words: str) -> None:
        """Says why not; what the request still has isn't read."""
        self.close_connection = True
        self.send(HTTPStatus.FORBIDDEN, PLAIN, f"{words}\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Requests aren't worth a line at the terminal."""

    def version_string(self) -> str:
        return "tpucc"


def allowed(hosts: Sequence[str], known: frozenset[str]) -> bool:
    return len(hosts) == 1 and hosts[0].strip().lower() in known
