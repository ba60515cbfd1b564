"""What the playground shows is of what is written and chosen now, or says that it is earlier."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.playground import built, visited
from tests.support.visits import settle
from tpucc.interop.programs import example
from tpucc.playground.server import Server

pytest.importorskip("tests.support.chromium", reason="there is nothing to drive a browser with")

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from tests.support.visits import Record

pytestmark = [pytest.mark.browser, pytest.mark.long]
HELLO = example("hello").source.read_text("utf-8")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(built(tmp_path_factory.mktemp("playground"))).serving(0.02) as made:
        yield made


@pytest.fixture
def page(tab: Page, record: Record, server: Server) -> Iterator[Page]:
    with visited(tab, record, server) as page:
        yield page


def write(page: Page, editor: str, text: str) -> None:
    page.locator(f"#{editor} .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def is_old(page: Page, place: str) -> bool:
    return "old" in (page.locator(place).get_attribute("class") or "").split()


def test_a_report_and_its_messages_are_earlier_until_the_next_are_there(page: Page) -> None:
    """Of another program, too, whose name is then said; and no status of one stands beside the report of another."""
    summary, status, messages = (page.locator(place) for place in ("#summary", "#status", "#model-messages"))
    page.route("**/engine", lambda route: None)
    page.locator("#program").select_option("03_wine")
    summary.get_by_text("before, of 01_hello.tpu: 28.3 µs end to end, 2,967 cycles").wait_for()
    assert is_old(page, "#report")
    page.locator("#stop:enabled").click()
    status.get_by_text("stopped before 03_wine.tpu was compiled; press Run to compile it").wait_for()
    page.locator("#tab-puzzle").click()
    assert status.inner_text() == "Model: stopped before 03_wine.tpu was compiled; press Run to compile it"
    page.locator("#tab-model").click()
    page.locator("#program").select_option("02_iris")
    page.frame_locator("#report").get_by_role("heading", name="iris on tpu_v1").wait_for()
    assert (status.inner_text(), is_old(page, "#report"), is_old(page, "#summary")) == ("ready", False, False)
    page.unroute("**/engine")
    write(page, "source", "model")
    messages.locator(".error").wait_for()
    page.route("**/engine", lambda route: None)
    page.keyboard.type("s")
    assert messages.locator(".earlier").inner_text() == "This is about an earlier version."
    assert status.inner_text() == "ready"
    page.keyboard.press("Backspace")
    assert messages.locator(".earlier").count() == 0
    assert status.inner_text().startswith("1 error after")
    page.locator("#stop:enabled").click()
    page.unroute("**/engine")


@pytest.mark.soak
def test_a_verdict_is_earlier_when_what_it_is_of_changes(page: Page) -> None:
    """The text, the model of the first tab, its target. Back as it was, it is the verdict again."""
    verdict, earlier = page.locator("#python-messages .right"), page.locator("#python-messages .earlier")
    page.locator("#tab-python").click()
    page.locator("#python-against").select_option("without")
    page.locator("#run").click()
    page.locator("#difference-messages").get_by_text("Both take 2,967 cycles").wait_for()
    assert earlier.count() == 0
    page.locator("#python .cm-content").press("x")
    assert earlier.inner_text() == "This is about an earlier version. Press Judge again."
    assert is_old(page, "#difference")
    page.keyboard.press("Backspace")
    assert earlier.count() == 0
    for control, other in (("target", "tiny"), ("level", "0"), ("program", "02_iris")):
        page.locator("#tab-model").click()
        before = page.locator(f"#{control}").input_value()
        page.locator(f"#{control}").select_option(other)
        page.locator("#tab-python").click()
        assert (verdict.is_visible(), earlier.count(), is_old(page, "#difference")) == (True, 1, True), control
        page.locator("#tab-model").click()
        page.locator(f"#{control}").select_option(before)
        page.locator("#tab-python").click()
        assert (verdict.is_visible(), earlier.count(), is_old(page, "#difference")) == (True, 0, False), control
    page.locator("#python-against").select_option("")
    assert not page.locator("#difference").is_visible()
    assert page.locator("#difference-messages").inner_text() == ""
    assert earlier.count() == 0


def test_a_verdict_that_comes_late_is_of_an_earlier_text(page: Page) -> None:
    """It underlines nothing in the newer one."""
    held: list[Route] = []
    page.route("**/engine", lambda route: held.append(route))
    page.locator("#tab-python").click()
    write(page, "python", "# one\n\nraise ValueError('late')\n")
    page.locator("#run").click()
    page.locator("#status").get_by_text("running").wait_for()
    write(page, "python", "# newer\n\n")
    while not held:
        settle(page)
    held[0].continue_()
    page.unroute("**/engine")
    page.locator("#python-messages .error").get_by_text("ValueError: late").wait_for()
    assert page.locator("#python-messages .earlier").is_visible()
    assert page.locator("#python .cm-lintRange-error").count() == 0
    page.locator("#tab-puzzle").click()
    page.locator("#run").click()
    page.locator("#puzzle-messages .error").wait_for()
    page.locator("#listing .cm-content").press("x")
    assert page.locator("#puzzle-messages .earlier").inner_text() == "This is about an earlier version. Press Check again."


def test_a_pass_that_asks_is_told_that_nobody_can_answer(page: Page) -> None:
    page.locator("#tab-python").click()
    write(page, "python", "input('how many? ')\n")
    page.locator("#run").click()
    page.locator("#python-messages .error").get_by_text("EOFError: nobody can type into this page").wait_for()
    page.locator("#run").click()
    page.locator("#python-messages").get_by_text("how many?").wait_for()


def test_the_next_visit_begins_where_the_last_one_ended(page: Page, server: Server) -> None:
    """In a new tab of the browser, unless its address is a link."""
    page.locator("#program").select_option("02_iris")
    page.locator("#target").select_option("tiny")
    page.locator("#tab-python").click()
    write(page, "python", "mine")
    pack = "async (state) => (await import(new URL('link.js', location.href))).packed(state)"
    link = page.evaluate(pack, {"program": "01_hello", "source": "of a link"})
    for address, chosen in ((server.address, ["02_iris", "tiny", "true"]), (server.address + link, ["01_hello", "tpu_v1", "false"])):
        other = page.context.new_page()
        other.goto(address)
        other.locator("html[data-ready]").wait_for()
        values = [other.locator(f"#{name}").input_value() for name in ("program", "target")]
        assert [*values, other.locator("#tab-python").get_attribute("aria-selected")] == chosen
        other.close()


def test_what_the_browser_keeps_for_this_tab_is_not_called_lost_with_the_page(page: Page) -> None:
    notice, text = page.locator("#notice"), page.locator("#source .cm-content")
    page.evaluate("""() => {
      window.plain = Storage.prototype.setItem;
      Storage.prototype.setItem = function (...given) {
        if (this === localStorage) throw new DOMException("full", "QuotaExceededError");
        window.plain.apply(this, given);
      };
    }""")
    text.press("x")
    notice.get_by_text("lost when you close this tab").wait_for()
    page.reload()
    text.get_by_text(re.compile("x")).first.wait_for()
    assert "x" in text.inner_text()
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }; }")
    text.press("y")
    notice.get_by_text("lost with this page").wait_for()


WORKERS = """() => {
  window.workers = [];
  delete Navigator.prototype.serviceWorker;
  window.Worker = class extends EventTarget {
    constructor() { super(); window.workers.push(this); }
    postMessage(_, [port]) { this.port = port; }
    terminate() {}
  };
}"""
READY = "window.workers.at(-1).port.postMessage({ ready: true })"


@pytest.mark.soak
def test_a_stop_during_the_first_load_says_what_it_stopped_and_waits_for_the_next_python(page: Page, server: Server) -> None:
    other, status = page.context.new_page(), "#status"
    other.add_init_script(f"({WORKERS})()")
    other.route("**/config.json", lambda route: route.fulfill(json={"engine": "pyodide"}))
    other.goto(server.address)
    other.locator(status).get_by_text("Python is being loaded").wait_for()
    other.locator("#run").click()
    other.locator("#stop:enabled").click()
    other.locator(status).get_by_text("stopped before 01_hello.tpu was compiled; press Run to compile it").wait_for()
    assert other.evaluate("[window.workers.length, document.documentElement.dataset.ready]") == [2, None]
    other.locator("#tab-puzzle").click()
    other.locator("#tab-model").click()
    other.locator("#program").select_option("02_iris")
    assert other.locator(status).inner_text() == "Python begins anew"
    other.evaluate(READY)
    other.locator("html[data-ready]").wait_for()
    assert other.locator(status).inner_text() == "ready"
    other.close()
