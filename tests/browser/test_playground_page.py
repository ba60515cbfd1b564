"""The playground in a browser, with this Python behind it: what is written is compiled, checked and judged, and can be stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests.support.legibility import legibility_in_both_themes
from tests.support.playground import built
from tests.support.visits import settle
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


LINK = """async (state) => {
  const { packed } = await import(new URL("link.js", location.href));
  location.hash = await packed(state);
}"""


def asked(page: Page) -> list[str]:
    """The kinds of the requests from now on."""
    kinds: list[str] = []
    page.on("request", lambda request: kinds.append(request.post_data_json["kind"]) if request.url.endswith("/engine") else None)
    return kinds


def test_python_is_run_by_the_button_alone(page: Page) -> None:
    """Not by a link whose model is compiled, not by the pause after typing in the model, not by what was asked for before the link came."""
    hello = example("hello").source.read_text("utf-8")
    kinds = asked(page)
    page.evaluate(LINK, {"tab": "python", "source": hello + "# mine\n", "python": "raise ValueError('unasked')"})
    page.locator("#python").get_by_text("unasked").wait_for()
    page.locator("#status").get_by_text("done after").wait_for()
    page.locator("#tab-model").click()
    write(page, "source", hello + "# more\n")
    page.locator("#status").get_by_text("done after").wait_for()
    page.locator("#tab-python").click()
    while len(kinds) < 2:
        settle(page)
    page.locator("#status").get_by_text("done after").wait_for()
    assert kinds == ["compile", "compile"]
    assert page.locator("#python-messages").inner_text() == ""
    page.locator("#run").click()
    page.locator("#python-messages .error").get_by_text("ValueError: unasked").wait_for()
    assert kinds == ["compile", "compile", "judge"]


@pytest.mark.parametrize("word", ["constructor", "__proto__", {"toString": 1}])
def test_a_link_with_anything_in_it_shows_the_page(page: Page, word: object) -> None:
    page.evaluate(LINK, {"tab": word, "program": word, "source": word, "target": "tiny", "level": "9"})
    page.locator("#summary:not(.old)").wait_for()
    page.wait_for_function("document.getElementById('target').value === 'tiny'")
    assert page.locator("#panel-model").is_visible()
    assert page.locator("#level").input_value() == "2"


def test_an_error_goes_with_what_it_is_about(page: Page) -> None:
    """A good report isn't dimmed, and has no error beside it; after Stop nothing is said about the text."""
    messages, summary, report = (page.locator(place) for place in ("#model-messages .error", "#summary", "#report"))
    page.locator("#batch").fill("8")
    page.locator("#target").focus()
    messages.get_by_text("E0510").wait_for()
    assert report.evaluate("(frame) => frame.classList.contains('old')")
    page.locator("#batch").fill("")
    page.locator("#target").focus()
    messages.wait_for(state="detached")
    assert summary.inner_text().endswith("(made when this page was built)")
    assert not report.evaluate("(frame) => frame.classList.contains('old')")
    write(page, "source", "model")
    messages.wait_for()
    page.route("**/engine", lambda route: None)
    write(page, "source", "model m")
    page.locator("#stop:enabled").click()
    messages.wait_for(state="detached")
    page.unroute("**/engine")
    assert summary.inner_text().startswith("before: ")


@pytest.mark.parametrize(
    ("kind", "select", "editor"), [("model", "program", "source"), ("puzzle", "puzzle", "listing"), ("python", "example", "python")]
)
def test_what_is_written_is_there_again_and_so_is_the_original(page: Page, kind: str, select: str, editor: str) -> None:
    page.locator(f"#tab-{kind}").click()
    chosen, text, original = page.locator(f"#{select}"), page.locator(f"#{editor} .cm-content"), page.locator(f"#{kind}-original")
    first, second = (chosen.locator("option").nth(place).get_attribute("value") for place in (0, 1))
    given = text.inner_text()
    assert original.is_disabled()
    write(page, editor, "mine")
    chosen.select_option(second)
    assert original.is_disabled()
    chosen.select_option(first)
    assert text.inner_text() == "mine"
    original.click()
    assert text.inner_text() == given
    assert original.is_disabled()


def test_it_can_be_read_at_both_widths(page: Page) -> None:
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert legibility_in_both_themes(page).faults == []
