"""The watch over real sockets: what it answers, whom it answers, and that an open page hears of a change."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from itertools import product
from pathlib import Path
from threading import Event, Thread

import msgspec
import pytest

from tests.support.cases import each
from tests.support.watching import SMALL, WRONG, recipe
from tpucc.cli import watch_command
from tpucc.cli.main import main
from tpucc.diagnostics import UsageError
from tpucc.watch import server as serving
from tpucc.watch.loopback import LARGEST, LOOPBACK, PLAIN, Content, LoopbackHandler
from tpucc.watch.server import PAGE, SOURCE, Board, Server, open_server
from tpucc.watch.session import Session
from tpucc.watch.site import CHANGES, FRONT, REPORT, State, View, waiting

LONG = 60.0
"""Seconds before a test gives up; none waits for them."""


@pytest.fixture
def board() -> Board:
    contents = {FRONT: Content("text/html; charset=utf-8", b"<p>home</p>"), "/a b.txt": Content("text/plain; charset=utf-8", b"file")}
    return Board(View(contents, State({FRONT: "1"})))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.tpu"
    path.write_text(SMALL)
    return path


@pytest.fixture
def server(board: Board, model: Path) -> Iterator[Server]:
    with Server(board, model, 0).serving(0.01) as opened:
        yield opened


def ask(
    server: Server, path: str = FRONT, method: str = "GET", host: str | None = None, body: str | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection(LOOPBACK, server.port, timeout=LONG)
    given = {name.replace("_", "-"): text for name, text in headers.items()} | ({} if host is None else {"Host": host})
    connection.request(method, path, None if body is None else body.encode(), given)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, dict(response.getheaders()), body


def raw(server: Server, request: bytes) -> bytes:
    with socket.create_connection((LOOPBACK, server.port), LONG) as connection:
        connection.sendall(request)
        with connection.makefile("rb") as stream:
            return stream.readline()


def test_a_request_that_drips_in_is_ended(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps no thread and no connection: all of a request has the time that the pause between two bytes has."""
    monkeypatch.setattr(LoopbackHandler, "timeout", 0.3)
    with socket.create_connection((LOOPBACK, server.port), LONG) as connection:
        connection.setblocking(False)
        for sent in range(200):  # noqa: B007 asked for below
            try:
                connection.send(b"a")
                if not connection.recv(1):
                    break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                break
    assert sent < 199


def test_pages_come_by_their_exact_paths(server: Server) -> None:
    assert ask(server)[::2] == (200, b"<p>home</p>")
    assert ask(server, "/view?x=1")[2] == b"<p>home</p>"
    assert ask(server, "/a%20b.txt")[2] == b"file"


@each(["/nothing", "/../a%20b.txt", "/%2e%2e/%2e%2e/etc/passwd", "/a%20b.txt/", "/./a%20b.txt", "/a%20b.txt%00", "/events/"])
def test_no_other_path_leads_anywhere(path: str, server: Server) -> None:
    assert ask(server, path)[0] == 404


def test_a_request_for_another_server_is_refused(server: Server) -> None:
    assert raw(server, b"GET http://example.com/ HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % server.port).split()[1] == b"404"


def test_head_has_the_headers_and_no_body(server: Server) -> None:
    status, headers, body = ask(server, method="HEAD")
    assert (status, headers["Content-Length"], body) == (200, "11", b"")
    assert ask(server, "/events", "HEAD")[1]["Content-Type"] == "text/event-stream"


@each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_get_and_head(method: str, server: Server) -> None:
    status, headers, body = ask(server, method=method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert b"home" not in body
    assert ask(server, method="BREW")[0] == 501


@each(["localhost", "127.0.0.1", "[::1]", "LocalHost"])
def test_hosts_that_are_this_machine_are_answered(name: str, server: Server) -> None:
    assert ask(server, host=f"{name}:{server.port}")[0] == 200


HOSTS = ["evil.example:{}", "localhost", "localhost:1", "localhost.evil.example:{}", "evil@localhost:{}", "0.0.0.0:{}", ""]


@each(product(HOSTS, [FRONT, SOURCE, "/events", "/nothing"]))
def test_a_foreign_host_is_refused(host: str, path: str, server: Server) -> None:
    status, _, body = ask(server, path, host=host.format(server.port))
    assert status == 403
    assert b"home" not in body
    assert b"softmax" not in body


def test_a_request_with_two_hosts_or_none_is_refused(server: Server) -> None:
    host = b"Host: localhost:%d\r\n" % server.port
    assert raw(server, b"GET / HTTP/1.1\r\n" + host + b"Host: evil.example\r\n\r\n").split()[1] == b"403"
    assert raw(server, b"GET / HTTP/1.0\r\n\r\n").split()[1] == b"403"


def test_only_the_loopback_interface_listens(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.port}/?key={server.secret}"


def test_every_answer_forbids_the_network_frames_and_caches(server: Server) -> None:
    for path in (PAGE, FRONT, SOURCE, "/events", "/nothing"):
        _, headers, _ = ask(server, path, "HEAD")
        assert headers["Content-Security-Policy"].startswith("default-src 'self' ")
        assert "frame-ancestors 'self'" in headers["Content-Security-Policy"]
        assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


# The page and the source


def own(server: Server, tag: str) -> dict[str, str]:
    """The headers with which the server's own page saves."""
    return {"Origin": server.root.rstrip("/"), "Content_Type": PLAIN, "If_Match": tag, "X_Tpucc_Key": server.secret}


def saving(server: Server, text: str, tag: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    return ask(server, SOURCE, "PUT", body=text, **(own(server, tag) | headers))


def test_the_page_has_its_parts_and_no_key(server: Server) -> None:
    html = ask(server, PAGE)[2].decode()
    assert "small.tpu" in html
    assert server.secret not in html, "whoever reaches the port may read it"
    for path in re.findall(r'(?:src|href)="(page/[^"]+)"', html):
        assert ask(server, f"/{path}")[0] == 200


def test_a_source_is_saved_over_what_it_was_made_from(server: Server, model: Path) -> None:
    _, headers, body = ask(server, SOURCE)
    assert body.decode() == SMALL
    status, later, body = saving(server, WRONG, headers["ETag"])
    assert (status, body.decode(), model.read_text()) == (200, WRONG, WRONG)
    assert later["ETag"] == ask(server, SOURCE)[1]["ETag"] != headers["ETag"]
    status, _, body = saving(server, SMALL, headers["ETag"])
    assert (status, body) == (412, b"not saved: small.tpu has changed on the disk\n")
    assert model.read_text() == WRONG


@each(
    [
        {"X_Tpucc_Key": "guessed"},
        {"X_Tpucc_Key": "\xe9"},
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"host": "elsewhere.example"},
        {"Content_Type": "text/plain"},
    ]
)
def test_only_the_page_with_the_key_saves(headers: dict[str, str], server: Server, model: Path) -> None:
    status, _, body = saving(server, WRONG, ask(server, SOURCE)[1]["ETag"], **headers)
    assert (status, body.split(b":")[0]) == (403, b"not saved")
    assert model.read_text() == SMALL


def test_a_save_that_breaks_off_or_is_no_text_changes_nothing(server: Server, model: Path) -> None:
    tag = ask(server, SOURCE)[1]["ETag"]
    for length in (LARGEST + 1, "9" * 5000):
        assert saving(server, WRONG, tag, Content_Length=str(length))[::2] == (413, b"not saved: at most 33,554,432 bytes are\n")
    head = "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in own(server, tag).items())
    request = f"PUT {SOURCE} HTTP/1.1\r\nHost: {LOOPBACK}:{server.port}\r\n{head}Content-Length: "
    with socket.create_connection((LOOPBACK, server.port), LONG) as connection:
        connection.sendall(f"{request}1000\r\n\r\nparam x = 1\n".encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert raw(server, f"{request}1\r\n\r\n".encode() + b"\xff").split()[1] == b"409"
    assert model.read_text() == SMALL


def test_line_ends_modes_and_links_stay(server: Server, model: Path, tmp_path: Path) -> None:
    (tmp_path / "kept.tpu").write_bytes(SMALL.replace("\n", "\r\n").encode())
    (tmp_path / "kept.tpu").chmod(0o640)
    model.unlink()
    model.symlink_to("kept.tpu")
    assert saving(server, WRONG, ask(server, SOURCE)[1]["ETag"])[0] == 200
    assert model.is_symlink()
    assert (tmp_path / "kept.tpu").read_bytes() == WRONG.replace("\n", "\r\n").encode()
    assert (tmp_path / "kept.tpu").stat().st_mode & 0o777 == 0o640


def test_a_source_that_cannot_be_edited_says_so(server: Server, model: Path) -> None:
    model.write_bytes(b"\xff")
    assert ask(server, SOURCE)[::2] == (409, f"can't edit {model}: it has text that is not UTF-8\n".encode())
    model.unlink()
    model.mkdir()
    assert ask(server, SOURCE)[::2] == (409, f"can't read {model}: is a directory\n".encode())


def test_a_deleted_source_is_written_anew_where_that_is_known(server: Server, model: Path) -> None:
    tag = ask(server, SOURCE)[1]["ETag"]
    model.unlink()
    status, gone, body = ask(server, SOURCE)
    assert (status, body) == (404, b"small.tpu has been deleted\n")
    assert saving(server, WRONG, tag)[0] == 412
    assert not model.exists()
    status, _, body = saving(server, WRONG, gone["ETag"])
    assert (status, body.decode(), model.read_text()) == (200, WRONG, WRONG)
    assert saving(server, SMALL, gone["ETag"])[0] == 412, "it is there again"


def test_the_source_says_who_may_write_it(server: Server) -> None:
    assert ask(server, SOURCE)[1]["Allow"] == "GET, HEAD"
    assert ask(server, SOURCE, **{"X-Tpucc-Key": server.secret})[1]["Allow"] == "GET, HEAD, PUT"


# Events


class Listening:
    """An open page: hears states one by one."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection(LOOPBACK, port, timeout=LONG)
        self._connection.request("GET", "/events")
        self._response: HTTPResponse = self._connection.getresponse()

    def line(self) -> bytes:
        return self._response.readline()

    def state(self) -> State:
        while not (line := self.line()).startswith(b"data: "):
            assert line
        return msgspec.json.decode(line.removeprefix(b"data: "), type=State)

    def close(self) -> None:
        self._response.close()
        self._connection.close()


@pytest.fixture
def listening(server: Server) -> Iterator[Listening]:
    page = Listening(server.port)
    yield page
    page.close()


def test_a_page_hears_the_state_at_once_and_every_change(server: Server, board: Board, listening: Listening) -> None:
    assert listening.state() == State({FRONT: "1"})
    board.show(View({}, State({FRONT: "2"}, errors=3)))
    assert listening.state() == State({FRONT: "2"}, errors=3)


def test_a_heartbeat_comes_when_there_is_nothing_new(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEARTBEAT", 0.01)
    page = Listening(server.port)
    page.state()
    assert [page.line(), page.line(), page.line()] == [b"\n", b":\n", b"\n"]
    page.close()


def test_stopping_ends_the_events(board: Board, model: Path) -> None:
    opened = Server(board, model, 0)
    thread = Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    page = Listening(opened.port)
    page.state()
    opened.stop()
    thread.join()
    assert page.line() == b"\n"
    assert page.line() == b""
    page.close()


def _saved(path: Path, text: str) -> None:
    """At once: on a busy machine a look may come between emptying a file and writing it."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_a_saved_source_becomes_a_new_page(tmp_path: Path) -> None:
    model = tmp_path / "small.tpu"
    model.write_text(SMALL)
    board, stop = Board(waiting(model.name)), Event()
    opened = Server(board, model, 0)
    session = Session(recipe(model), board, lambda outcome, seconds: None, pause=0.01)
    thread = Thread(target=session.follow, args=(stop,), daemon=True)
    thread.start()
    with opened.serving(0.01):
        page = Listening(opened.port)
        good = _settled(page)
        assert (good.errors, b"<p>cycles</p>" in ask(opened)[2]) == (0, True)
        _saved(model, WRONG)
        bad = _settled(page)
        assert bad.errors == 1
        assert bad.pages[FRONT] != good.pages[FRONT]
        assert bad.pages[REPORT] == good.pages[REPORT]
        assert b'<mark class="error">v</mark>' in ask(opened)[2]
        assert ask(opened, "/explain/E0201")[2].startswith(b"# E0201: ")
        _saved(model, SMALL)
        mended = _settled(page)
        assert mended.change.startswith("Both take ")
        assert mended.change in ask(opened, CHANGES)[2].decode()
        assert {path: digest for path, digest in mended.pages.items() if path != CHANGES} == good.pages
        stop.set()
        thread.join()
        page.close()


def _settled(page: Listening) -> State:
    """The next state in which nothing is being compiled."""
    while (state := page.state()).compiling:
        pass
    return state


# Ports and the command


def test_a_port_that_is_taken_is_passed_over_unless_it_was_asked_for(
    board: Board, model: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "PORTS", range(server.port, server.port + 1))
    other = open_server(board, model, None)
    assert other.port != server.port
    other.server_close()
    with pytest.raises(UsageError, match="E0540: can't listen on port"):
        open_server(board, model, server.port)


@pytest.mark.long
def test_the_command_serves_until_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "small.tpu"
    model.write_text(SMALL)
    monkeypatch.chdir(tmp_path)

    def once(self: Session, stop: Event) -> None:
        for text in (SMALL, SMALL.replace("[4, ", "[400, "), WRONG):
            model.write_text(text)
            self.turn()
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "follow", once)
    opened: list[str] = []
    monkeypatch.setattr(watch_command.webbrowser, "open", opened.append)
    monkeypatch.setattr(watch_command, "EDITOR", tmp_path / "none")
    assert main(["watch", str(model), "--port", "0", "--open", "-o", "out"]) == 0
    out, err = capsys.readouterr()
    assert opened[0] in out
    assert "small: " in out
    assert " cycles on the device, " in out
    changed = r"^ +End to end .* µs for an item \(-.*\(\+.* for a batch of 400 instead of 4; on the device [\d,]+ cycles instead of [\d,]+$"
    assert re.search(changed, out, re.MULTILINE)
    assert out.endswith("stopped\n")
    note, told = err.split("\n", 1)
    assert "`make editor`" in note
    assert told.startswith("small.tpu:4:24: error E0201: nothing is named v")
    assert {path.name for path in tmp_path.iterdir()} == {"small.tpu", "out"}
    assert (tmp_path / "out" / "report.html").is_file()


@each([["missing.tpu"], ["small.tpu", "--target", "nothing"], ["small.tpu", "--port", "70000"]])
def test_what_cannot_start_is_a_usage_error(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.tpu").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    assert main(["watch", *arguments]) == 2


def test_a_port_of_another_is_a_usage_error(tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.tpu").write_text(SMALL)
    assert main(["watch", str(tmp_path / "small.tpu"), "--port", str(server.port)]) == 2
    assert "E0540" in capsys.readouterr().err
