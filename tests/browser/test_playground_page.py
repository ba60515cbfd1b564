"""The playground in a browser, with this Python behind it: what is written is compiled, checked and judged, and can be stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests.support.legibility import legibility
from tests.support.playground import built
from tpucc.interop.programs import example
from tpucc.playground.server import Server

pytest.importorskip("tests.support.chromium", reason="there is nothing to drive a browser with")

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.support.visits import Record

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(built(tmp_path_factory.mktemp("playground")))
    thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.stop()
    thread.join()


@pytest.fixture
def page(tab: Page, record: Record, server: Server) -> Iterator[Page]:
    """The page, which may ask its server for its own files and for work, and nobody else."""
    files = (str(path.relative_to(server.folder)) for path in server.folder.rglob("*") if path.is_file())
    record.allowed |= {server.address + path for path in ("", "config.json", "engine", "stop", *files)}
    tab.context.set_offline(False)
    tab.goto(server.address)
    tab.locator("html[data-ready]").wait_for()
    yield tab
    tab.goto("about:blank")
    tab.context.set_offline(True)
    record.faults[:] = [fault for fault in record.faults if "GET blob:" not in fault]  # the report that the page has put into the frame


def write(page: Page, editor: str, text: str) -> None:
    """In the place of all that the editor has."""
    page.locator(f"#{editor} .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_a_model_is_compiled_when_it_is_edited(page: Page) -> None:
    """First the report from when the page was built; then an error at its place, and the report of the mended text."""
    summary, report = page.locator("#summary"), page.frame_locator("#report")
    assert summary.inner_text() == "2,967 cycles, 4.24 µs, weight memory bound (made when this page was built)"
    report.get_by_role("heading", name="hello on tpu_v1").wait_for()
    write(page, "source", example("hello").source.read_text("utf-8").replace("x @ w", "x @ v"))
    page.locator("#source .cm-lintRange-error").get_by_text("v", exact=True).wait_for()
    message = page.locator("#model-messages .message.error")
    assert message.inner_text().startswith("01_hello.tpu:6:16 error E0201: nothing is named v")
    assert summary.inner_text().startswith("before: 2,967 cycles")
    message.get_by_role("button").click()
    page.keyboard.press("Delete")
    page.keyboard.insert_text("w")
    summary.get_by_text(re.compile("^2,967 cycles, 4.24 µs, weight memory bound$")).wait_for()
    page.locator("#target").select_option("tiny")
    report.get_by_role("heading", name="hello on tiny").wait_for()


def test_a_puzzle_is_checked_and_a_pass_is_judged(page: Page) -> None:
    page.locator("#tab-model").press("ArrowRight")
    page.locator("#puzzle").select_option("3")
    page.locator("#listing .cm-content").press("Control+Enter")
    page.locator("#puzzle-messages").get_by_text("puzzle 3: relu of rows: not solved").wait_for()
    page.locator("#tab-python").click()
    page.locator("#run").click()
    page.locator("#python-messages .right").get_by_text("01_hello.tpu: equal").wait_for()
    page.locator("#example").select_option("the stage allocate")
    write(page, "python", "def allocate(lives, rows):\n    return 1 / 0\n")
    page.keyboard.press("Control+Enter")
    page.locator("#python .cm-lintRange-error").get_by_text("return 1 / 0").wait_for()


def test_an_endless_loop_is_stopped_and_a_link_holds_what_is_written(page: Page, server: Server, record: Record) -> None:
    page.locator("#tab-python").click()
    write(page, "python", "while True: pass")
    page.locator("#run").click()
    page.locator("#stop").click()
    page.locator("#status").get_by_text("stopped").wait_for()
    page.locator("#link").click()
    page.locator("#status").get_by_text("the address holds").wait_for()
    address = page.url
    assert address.startswith(f"{server.address}#play=")
    page.goto("about:blank")
    page.goto(address)
    page.locator("#python").get_by_text("while True: pass").wait_for()
    page.locator("html[data-ready]").wait_for()
    assert page.locator("#python-messages").inner_text() == "", "Python from a link is not run before the button is pressed"
    page.locator("#tab-model").click()
    page.locator("#batch").fill("16")
    page.locator("#target").focus()
    page.locator("#model-messages").get_by_text("batch").first.wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_can_be_read_at_both_widths(page: Page, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert legibility(page).faults == []
