"""The local server of the playground: it answers its own page alone, and what it runs can be ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

import pytest

from tests.support.cases import each
from tpucc.playground.engine import answered
from tpucc.playground.server import Server
from tpucc.watch.loopback import JSON, LARGEST

PUZZLE = json.dumps({"kind": "puzzle", "number": 1, "text": "    halt\n", "seed": 1}).encode()
LOOP = json.dumps({"kind": "judge", "source": "", "passes": "print('so far')\nwhile True: pass"}).encode()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("the page")
    (tmp_path / "secret").write_text("not for you")
    with Server(tmp_path / "page").serving(0.01) as made:
        yield made


def base(server: Server) -> str:
    return f"/{server.secret}/"


def asked(server: Server, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    host = f"127.0.0.1:{server.server_address[1]}"
    known = {"Host": host, "Origin": f"http://{host}", "Content-Type": JSON} if body is not None else {"Host": host}
    connection = HTTPConnection(host, timeout=30)
    connection.request(
        "GET" if body is None else "POST", path, body, known | {name.replace("_", "-"): text for name, text in headers.items()}
    )
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_it_serves_the_page_and_nothing_above_it(server: Server) -> None:
    assert asked(server, base(server)) == (200, b"the page")
    assert asked(server, base(server) + "config.json") == (200, b'{"engine": "local"}')
    assert asked(server, base(server) + "../secret")[0] == 404
    assert asked(server, base(server) + "%2e%2e/secret")[0] == 404
    assert asked(server, "/")[0] == 403
    assert asked(server, base(server), Host="elsewhere.example")[0] == 403


@each([{"Origin": "http://elsewhere.example"}, {"Origin": "null"}, {"Content_Type": "text/plain"}, {"Content_Length": str(LARGEST + 1)}])
def test_only_the_page_may_ask(headers: dict[str, str], server: Server) -> None:
    assert asked(server, base(server) + "engine", b"{}", **headers)[0] == 403
    assert asked(server, "/engine", b"{}")[0] == 403


@pytest.mark.long
def test_what_runs_can_be_stopped(server: Server) -> None:
    found: list[int] = []
    endless = Thread(target=lambda: found.append(asked(server, base(server) + "engine", LOOP)[0]))
    endless.start()
    while not server.engine._printed:
        endless.join(0.01)
    assert asked(server, base(server) + "stop", b"{}") == (200, b'{"printed": "so far\\n"}')
    endless.join()
    assert found == [409]
    assert asked(server, base(server) + "stop", b"{}") == (200, b'{"printed": ""}')
    assert asked(server, base(server) + "stop", b"{}", **{"Request-Name": "late"})[0] == 200
    assert asked(server, base(server) + "engine", LOOP, **{"Request-Name": "late"})[0] == 409, "it came after the word that stops it"
    assert asked(server, base(server) + "engine", PUZZLE) == (200, answered(PUZZLE) + b"\n")


def test_a_pass_that_reads_standard_input_takes_no_request(server: Server) -> None:
    """It would be the next one."""
    read = json.dumps({"kind": "judge", "source": "", "passes": "import os; raise ValueError(os.read(0, 9))"}).encode()
    status, found = asked(server, base(server) + "engine", read)
    assert (status, "ValueError: b''" in found.decode()) == (200, True)
    assert asked(server, base(server) + "engine", PUZZLE) == (200, answered(PUZZLE) + b"\n")
