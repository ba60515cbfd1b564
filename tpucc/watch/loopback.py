"""A server for the pages of this machine: on the loopback interface, and for requests that name it as their host.

A page elsewhere whose name was pointed at this address still says its own name as the host, and is refused (DNS rebinding).
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from urllib.parse import unquote

LOOPBACK = "127.0.0.1"
NAMES = ("localhost", LOOPBACK, "[::1]")
PATIENCE = 30.0
"""Seconds that a request may take to arrive, or an answer to be taken."""
LARGEST = 2**25
"""Bytes that a request may have."""
PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""With every answer: no page of another origin may frame or read it."""


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

    @property
    def place(self) -> str:
        """The path that is asked for."""
        return unquote(self.path.partition("?")[0])

    @property
    def known(self) -> bool:
        """Whether the request names this machine as its host."""
        return allowed(self.headers.get_all("Host", []), self.server.hosts)

    def content(self, kind: str) -> bytes | None:
        """What a page of this server sends; None where another page asks, or it is of another type, or too long."""
        length = self.headers.get("Content-Length", "")
        own = self.headers.get("Origin", "").removeprefix("http://") in self.server.hosts
        if not self.known or not own or self.headers.get("Content-Type") != kind or not length.isdecimal() or int(length) > LARGEST:
            return None
        return self.rfile.read(int(length))

    def head(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, **self.common}.items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, status: HTTPStatus, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer; HEAD has no body."""
        self.head(status, {"Content-Type": kind, "Content-Length": str(len(body))} | dict(headers or {}))
        if self.command != "HEAD":
            self.wfile.write(body)

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
