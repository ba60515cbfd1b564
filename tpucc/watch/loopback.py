"""What the servers of `tpucc watch` and of the playground share: they listen on the loopback interface, and a handler can tell whether a
request names this machine as its host.

A page elsewhere whose name was pointed at this address still says its own name as the host, and is to be refused (DNS rebinding).
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
"""Seconds that a whole request may take to arrive, or that a write of an answer may wait for its reader."""
LARGEST = 2**25
"""Bytes that the body of a request may have."""
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
"""Content types by the ends of files' names; a file with another end is taken for plain text."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer: no page of another origin may frame or read it."""


@dataclass(frozen=True, slots=True)
class Content:
    """What an answer sends: the body, and its content type."""

    type: str
    body: bytes


def content_of(name: str, body: bytes) -> Content:
    """The content of a file; its type follows from the end of its name."""
    return Content(TYPES.get(PurePosixPath(name).suffix, PLAIN), body)


class LoopbackServer(ThreadingMixIn, TCPServer):
    """Listens on a port of the loopback interface; port 0 is any free one. Raises `OSError` when it can't be had.

    Other users of the machine reach it too. Servers put the `secret` into the address that they print, so that a request which has it
    comes from somebody who was told; asking for it is their handlers' part. `hosts` are the names of this machine that requests may use.
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
        """Ends `serve_forever` in its thread, and gives the port back. Never returns before `serving` has begun; may be called twice."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that goes away in the middle isn't an error of ours; other errors are reported as usual, those of files too."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class LoopbackHandler(BaseHTTPRequestHandler):
    """What the handlers of both servers have in common. One handler reads and answers one request, in a thread of its own."""

    server: LoopbackServer
    timeout = PATIENCE
    common: Mapping[str, str] = HEADERS
    """Headers of every answer."""

    def setup(self) -> None:
        super().setup()
        self._late = Timer(self.timeout, self._end_request)  # for all of the request: the socket's own limit is between two bytes
        self._late.daemon = True
        self._late.start()

    def finish(self) -> None:
        self._late.cancel()
        super().finish()

    def _end_request(self) -> None:
        """Reads no more: what has come so far is taken for all."""
        with suppress(OSError):  # the connection is closed already
            self.connection.shutdown(SHUT_RD)

    @property
    def place(self) -> str:
        """The path that is asked for, without what follows a `?`."""
        return unquote(self.path.partition("?")[0])

    @property
    def names_us(self) -> bool:
        """Whether the header `Host` names this machine: see `allowed`."""
        return allowed(self.headers.get_all("Host", []), self.server.hosts)

    def request_body(self, kind: str) -> bytes | None:
        """The body of the request, if a page of this server sends it; None where another page asks, where its type isn't `kind`, or where
        it is too long. Raises `ConnectionError` where the page goes away before it has sent all of it."""
        length = self.length
        own = self.headers.get("Origin", "").removeprefix("http://") in self.server.hosts
        if not self.names_us or not own or self.headers.get("Content-Type") != kind or length is None or length > LARGEST:
            return None
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError(f"{length} bytes were announced, and {len(body)} came")
        return body

    @property
    def length(self) -> int | None:
        """How long the request says that its body is; None where it doesn't say so in at most twenty digits."""
        length = self.headers.get("Content-Length", "")
        return int(length) if length.isdecimal() and len(length) <= 20 else None

    def head(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        """Sends the status and the headers, those of `common` too."""
        self._late.cancel()
        self.send_response(status)
        for name, value in {**headers, **self.common}.items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, status: HTTPStatus, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Sends a whole answer; one to HEAD has no body."""
        self.head(status, {"Content-Type": kind, "Content-Length": str(len(body))} | dict(headers or {}))
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer(self, content: Content | None) -> None:
        """Sends what is at the path that was asked for; None: nothing is there."""
        if content is None:
            return self.send(HTTPStatus.NOT_FOUND, PLAIN, b"there is nothing here\n")
        return self.send(HTTPStatus.OK, content.type, content.body)

    def refuse(self, words: str) -> None:
        """Answers that the request isn't allowed, and why. What of it hasn't been read isn't read any more."""
        self.close_connection = True
        self.send(HTTPStatus.FORBIDDEN, PLAIN, f"{words}\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Requests aren't worth a line at the terminal."""

    def version_string(self) -> str:
        return "tpucc"


def allowed(hosts: Sequence[str], known: frozenset[str]) -> bool:
    """Whether a request has exactly one header `Host`, and that is one of the known names, in small letters or capitals."""
    return len(hosts) == 1 and hosts[0].strip().lower() in known
