"""The playground's page with this Python behind it: on the loopback interface, below a path that nobody else can guess.

A request may hold Python that is then run. So only the page may ask: it is reached by its secret path, says `localhost` as its host, and
is the origin of what it asks.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from mimetypes import guess_type
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from threading import Lock
from urllib.parse import unquote

from tpucc.watch.server import LOOPBACK, NAMES, PATIENCE, allowed

LARGEST = 2**25
"""Bytes that a request may have."""
CONFIG = b'{"engine": "local"}'
JSON = "application/json"
TYPES = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm", ".json": JSON}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Engine:
    """A child process that answers, started when it is needed."""

    def __init__(self) -> None:
        self._asking, self._changing = Lock(), Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def ask(self, request: bytes) -> bytes | None:
        """The answer to a request in one line; None when `stop` came before it."""
        with self._asking:
            child = self._running()
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                child.stdin.write(request.replace(b"\n", b" ") + b"\n")
                child.stdin.flush()
            except (OSError, ValueError):
                return None
            with suppress(ValueError):  # closed by `stop`
                return child.stdout.readline() or None
            return None

    def stop(self) -> None:
        """Ends what runs."""
        with self._changing:
            child, self._child = self._child, None
            if child is not None:
                child.kill()
                child.wait()
                for pipe in (child.stdin, child.stdout):
                    with suppress(OSError):  # what was asked last is still in it
                        pipe.close()  # type: ignore[union-attr]

    def _running(self) -> subprocess.Popen[bytes]:
        with self._changing:
            if self._child is None or self._child.poll() is not None:
                command = [sys.executable, "-m", "tpucc.playground.child"]
                self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            return self._child


class Server(ThreadingMixIn, TCPServer):
    """Serves a built page on a port of the loopback interface; port 0 is any free one. Raises `OSError` when it can't be had."""

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would share the port with whoever has it
    request_queue_size = 64

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder, self.engine = folder.resolve(), Engine()
        self.secret = f"/{secrets.token_urlsafe(16)}/"
        super().__init__((LOOPBACK, port), Handler)
        self.hosts = frozenset(f"{name}:{self.server_address[1]}" for name in NAMES)

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}{self.secret}"

    def stop(self) -> None:
        """Ends `serve_forever` in its thread, and what runs."""
        self.engine.stop()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that goes away in the middle isn't an error of ours; other errors are reported as usual."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """Answers one request: for a file of the page, or for work."""

    server: Server
    timeout = PATIENCE

    def do_GET(self) -> None:
        path = self._path()
        if path is None:
            return self._refuse()
        if path == "config.json":
            return self._send(HTTPStatus.OK, JSON, CONFIG)
        file = (self.server.folder / (path or "index.html")).resolve()
        if not file.is_relative_to(self.server.folder) or not file.is_file():
            return self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is nothing here\n")
        kind = TYPES.get(file.suffix) or guess_type(file.name)[0] or "application/octet-stream"
        return self._send(HTTPStatus.OK, kind, file.read_bytes())

    def do_POST(self) -> None:
        path, length = self._path(), self.headers.get("Content-Length", "")
        own = self.headers.get("Origin", "").removeprefix("http://") in self.server.hosts
        if path is None or not own or self.headers.get("Content-Type") != JSON or not length.isdecimal() or int(length) > LARGEST:
            return self._refuse()
        request = self.rfile.read(int(length))
        if path == "stop":
            self.server.engine.stop()
            return self._send(HTTPStatus.OK, JSON, b"{}")
        answer = self.server.engine.ask(request) if path == "engine" else None
        if answer is None:
            return self._send(HTTPStatus.CONFLICT, "text/plain", b"stopped\n")
        return self._send(HTTPStatus.OK, JSON, answer)

    def log_message(self, format: str, *args: object) -> None:
        """Requests aren't worth a line at the terminal."""

    def version_string(self) -> str:
        return "tpucc"

    def _path(self) -> str | None:
        """The path below the secret; None for who doesn't know it, and for a page elsewhere that says its own name as the host."""
        path = unquote(self.path.partition("?")[0])
        known = allowed(self.headers.get_all("Host", []), self.server.hosts) and path.startswith(self.server.secret)
        return path.removeprefix(self.server.secret) if known else None

    def _refuse(self) -> None:
        self.close_connection = True
        self._send(HTTPStatus.FORBIDDEN, "text/plain", b"only the page itself may ask\n")

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": kind, "Content-Length": str(len(body))} | HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
