"""The playground's page with this Python behind it: on the loopback interface, below a path that nobody else can guess.

A request may hold Python that is then run. So only the page may ask: it is reached by its secret path, says `localhost` as its host, and
is the origin of what it asks.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from threading import Lock

import msgspec

from tpucc.guest.child import Child
from tpucc.guest.files import duration_of
from tpucc.guest.jails import NOWHERE, OWN
from tpucc.guest.serving import Request
from tpucc.plain_errors import as_plain
from tpucc.playground.requests import Answer
from tpucc.plugins.code import UserCode
from tpucc.plugins.failures import Failed
from tpucc.watch.loopback import JSON, PLAIN, LoopbackHandler, LoopbackServer, content_of

CONFIG = "config.json"
"""The file that says who answers; the one that was built says that Pyodide does."""
NO_LIMIT = duration_of(float("inf"))
"""A request may take any time: the page has a button that stops it."""
ENGINE = "tpucc.playground.engine:answered_in_child"
"""The function that a child calls."""
NAME = "Request-Name"
"""The header in which the page names a request: to stop it even if it comes after the word that stops it."""
REFUSED = "only the page itself may ask"


class Engine:
    """A child process that answers, started when it is needed."""

    def __init__(self) -> None:
        self._asking, self._changing = Lock(), Lock()
        self._child: Child | None = None
        self._printed = ""
        self._stopped = set[str]()

    def ask(self, request: bytes, name: str = "") -> bytes | None:
        """The answer to a request in one line; None when `stop` came before it. It says where the visitor's code has ended the child."""
        with self._asking:
            with self._changing:
                if name in self._stopped:
                    return None
                child = self._child = self._child or Child(OWN, NOWHERE, told=self._hear)
                self._printed = ""
                child.begin(Request("", ENGINE, (request,), NO_LIMIT))
            answer = child.answer(NO_LIMIT)
            if answer.failure is None:
                return str(answer.value).encode() + b"\n"
            return self._failed(answer.failure) if child is self._child else None

    def stop(self, name: str = "") -> str:
        """Ends what runs. Returns what the visitor's code has printed by then. The request of this `name`, which may come after this, isn't
        begun."""
        with self._changing:
            self._stopped |= {name} - {""}
            child, self._child = self._child, None
            if child is None:
                return ""
            child.close()
            return self._printed

    def _hear(self, text: str) -> None:
        self._printed += text

    def _failed(self, failure: Failed) -> bytes:
        error = UserCode("your Python:", "", 0).of(failure)
        return msgspec.json.encode(asdict(Answer(as_plain(error), self._printed))) + b"\n"


class Server(LoopbackServer):
    """Serves a built page. Raises `OSError` when the port can't be had."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder, self.engine = folder.resolve(), Engine()
        super().__init__(port, Handler)

    @property
    def address(self) -> str:
        """The address of the page, with the secret."""
        return f"{self.root}{self.secret}/"

    def stop(self) -> None:
        """Ends `serve_forever` in its thread, and what runs."""
        self.engine.stop()
        super().stop()


class Handler(LoopbackHandler):
    """Answers one request: for a file of the page, or for work."""

    server: Server

    def do_GET(self) -> None:
        path = self._path()
        if path is None:
            return self.refuse(REFUSED)
        if path == CONFIG:
            return self.answer(content_of(CONFIG, b'{"engine": "local"}'))
        file = (self.server.folder / (path or "index.html")).resolve()
        there = file.is_relative_to(self.server.folder) and file.is_file()
        return self.answer(content_of(file.name, file.read_bytes()) if there else None)

    def do_POST(self) -> None:
        path = self._path()
        request = None if path is None else self.request_body(JSON)
        if request is None:
            return self.refuse(REFUSED)
        name = self.headers.get(NAME, "")
        if path == "stop":
            return self.send(HTTPStatus.OK, JSON, json.dumps({"printed": self.server.engine.stop(name)}).encode())
        answer = self.server.engine.ask(request, name) if path == "engine" else None
        if answer is None:
            return self.send(HTTPStatus.CONFLICT, PLAIN, b"stopped\n")
        return self.send(HTTPStatus.OK, JSON, answer)

    def _path(self) -> str | None:
        """The path below the secret; None for who doesn't know it, and for a page elsewhere that says its own name as the host."""
        secret = f"/{self.server.secret}/"
        return self.place.removeprefix(secret) if self.names_us and self.place.startswith(secret) else None
