"""The playground in a browser, with this Python behind it: what is written is compiled, checked and judged, and can be stopped."""

from __future__ import annotations

import base64
import random
import re
import string
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.legibility import legibility_in_both_themes
from tests.support.playground import built, visited
from tests.support.visits import settle
from tpucc.interop.programs import example
from tpucc.playground.server import Server

pytest.importorskip("tests.support.chromium", reason="there is nothing to drive a browser with")

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.support.visits import Record

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(lighter(built(tmp_path_factory.mktemp("playground")))).serving(0.02) as made:
        yield made


def lighter(folder: Path) -> Path:
    """The page opens with the report of `hello`, of which only a heading is left: a browser takes 0.3 s for a whole one, in every test.
    That of `iris` is whole."""
    report = folder / "reports" / "01_hello.html"
    assert "hello on tpu_v1" in report.read_text("utf-8")
    report.write_text("<!doctype html><html lang='en'><title>hello</title><h1>hello on tpu_v1</h1></html>", "utf-8")
    return folder


@pytest.fixture
def page(tab: Page, record: Record, server: Server) -> Iterator[Page]:
    with visited(tab, record, server) as page:
        yield page


def write(page: Page, editor: str, text: str) -> None:
    """In the place of all that the editor has."""
    page.locator(f"#{editor} .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


@pytest.mark.long
def test_a_model_is_compiled_when_it_is_edited(page: Page) -> None:
    """First the report from when the page was built; then an error at its place, and the report of the mended text. The browser's Back
    leads to none of them."""
    steps = page.evaluate("history.length")
    summary, report = page.locator("#summary"), page.frame_locator("#report")
    assert summary.inner_text() == "28.3 µs end to end, 2,967 cycles on the device, host work bound (made when this page was built)"
    report.get_by_role("heading", name="hello on tpu_v1").wait_for()
    write(page, "source", example("hello").source.read_text("utf-8").replace("x @ w", "x @ v"))
    page.locator("#source .cm-lintRange-error").get_by_text("v", exact=True).wait_for()
    message = page.locator("#model-messages .message.error")
    assert message.inner_text().startswith("01_hello.tpu:6:16 error E0201: nothing is named v")
    assert summary.inner_text().startswith("before: 28.3 µs end to end, 2,967 cycles")
    message.get_by_role("button").click()
    page.keyboard.press("Delete")
    page.keyboard.insert_text("w")
    summary.get_by_text(re.compile("^28.3 µs end to end, 2,967 cycles on the device, host work bound$")).wait_for()
    page.locator("#target").select_option("tpu_edge")
    report.get_by_role("heading", name="hello on tpu_edge").wait_for()
    chosen(page, "target", "tpu_v1")
    chosen(page, "program", "02_iris")
    report.get_by_role("heading", name="iris on tpu_v1").wait_for()
    assert summary.inner_text().endswith("(made when this page was built)")
    assert page.evaluate("history.length") == steps


TWICE = """weights random(seed=1)

model m(x: f32[8, 16] in [-1.0, 1.0]):
    weight w: f32[16, 16]
    return relu(relu(x @ w)) @ w
"""
"""The pass of the page leaves out the second relu."""


@pytest.mark.long
def test_a_puzzle_is_checked_and_a_pass_is_judged(page: Page) -> None:
    page.locator("#tab-model").press("ArrowRight")
    page.locator("#puzzle").select_option("3")
    page.locator("#listing .cm-content").press("Control+Enter")
    page.locator("#puzzle-messages").get_by_text("puzzle 3: relu of rows: not solved").wait_for()
    assert page.locator("#listing .cm-line").first.inner_text() == "; puzzle 3: relu of rows"
    page.locator("#puzzle").select_option("8")
    page.locator("#run").click()
    page.frame_locator("#drawing-puzzle").locator("#timeline svg").wait_for()
    page.locator("#puzzle").select_option("4")
    assert not page.locator("#drawing-puzzle").is_visible(), "it is of another puzzle"
    page.locator("#tab-python").click()
    page.locator("#run").click()
    page.locator("#python-messages .right").get_by_text("your pass changed nothing in this model").wait_for()
    assert not page.locator("#drawing-python").is_visible()
    page.locator("#tab-model").click()
    write(page, "source", TWICE)
    page.locator("#tab-python").click()
    page.locator("#run").click()
    pictures = page.frame_locator("#drawing-python").locator("#rewrite-0-0 svg")
    pictures.first.wait_for()
    assert ["relu.1" in picture for picture in pictures.all_text_contents()] == [True, False]
    page.locator("#example").select_option("the stage allocate")
    write(page, "python", "def allocate(lives, rows):\n    return 1 / 0\n")
    page.keyboard.press("Control+Enter")
    page.locator("#python .cm-lintRange-error").get_by_text("return 1 / 0").wait_for()
    write(page, "python", "while True: pass")
    page.locator("#run").click()
    page.locator("#python-messages .error").wait_for(state="detached")
    page.locator("#stop").click()


@pytest.mark.long
def test_an_endless_loop_is_stopped_and_a_link_holds_what_is_written(page: Page, server: Server, record: Record) -> None:
    page.locator("#tab-python").click()
    write(page, "python", "print('so far')\nwhile True: pass")
    page.locator("#run").click()
    while not server.engine._printed:
        page.wait_for_timeout(10)
    page.locator("#stop").click()
    page.locator("#status").get_by_text("stopped").wait_for()
    assert page.locator("#python-messages").inner_text().strip() == "printed:\nso far"
    page.locator("#link").click()
    page.locator("#status").get_by_text("the address holds").wait_for()
    address = page.url
    assert address.startswith(f"{server.address}#play=")
    page.goto("about:blank")
    page.goto(address)
    page.locator("#python").get_by_text("while True: pass").wait_for()
    page.locator("html[data-ready]").wait_for()
    assert page.locator("#python-messages").inner_text() == "", "Python from a link is not run before the button is pressed"


@pytest.mark.long
def test_an_edit_that_waits_behind_a_loop_has_no_report_yet(page: Page) -> None:
    """When the loop is stopped, it is compiled. What waits behind the loop by a button is not run."""
    kinds = asked(page)
    page.locator("#tab-python").click()
    write(page, "python", "while True: pass")
    page.locator("#run").click()
    page.locator("#tab-puzzle").click()
    page.locator("#status").get_by_text("running: Pass or stage …").wait_for()
    page.locator("#run").click()
    page.locator("#status").get_by_text("running: Pass or stage … Check waits.").wait_for()
    page.locator("#tab-model").click()
    write(page, "source", "model m")
    page.locator("#summary").get_by_text("before: ").wait_for()
    assert page.locator("#model-messages").inner_text() == ""
    page.locator("#stop:enabled").click()
    page.locator("#model-messages .error").wait_for()
    page.locator("#stop:disabled").wait_for()
    assert kinds == ["judge", "compile"]
    assert page.locator("#summary").inner_text().startswith("before: ")


QUEUE = """async () => {
  const { Queue } = await import(new URL("queue.js", location.href));
  const { Stopped } = await import(new URL("engine.js", location.href));
  const said = [];
  let end = null;
  const answering = {
    ask: (begin) => new Promise((resolve, reject) => { end = { resolve, reject }; said.push(`asks ${begin()}`); }),
    stop: () => { said.push("stops"); end.reject(new Stopped()); },
  };
  const heard = {
    before: Promise.resolve(), busy: () => {}, begun: () => {}, answered: ({ request }, found) => said.push(`${request}: ${found}`),
    failed: ({ request, late }) => said.push(`${request}: ${late ? "late" : "stopped"}`),
  };
  const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const queue = new Queue(answering, heard, () => 60);
  const ask = async (kind, request) => { queue.ask({ kind, request, turn: 0 }); await pause(0); };
  await ask("model", "A");
  await ask("model", "B");
  await ask("model", "A");
  await pause(90);
  end.resolve("good");
  await pause(0);
  await ask("model", "C");
  await ask("model", "D");
  await pause(90);
  await pause(90);
  await ask("model", "E");
  await ask("python", "F");
  await pause(0);
  queue.stop();
  await pause(0);
  await ask("model", "E");
  queue.stop();
  await pause(0);
  await ask("python", "G");
  await ask("model", "H");
  await pause(90);
  end.resolve("good");
  await pause(0);
  return said;
}"""


@pytest.mark.long
def test_a_newer_text_takes_the_place_of_a_long_compile(page: Page) -> None:
    """And of nothing else. A text that is stopped isn't compiled again by itself, and one that is edited back isn't compiled twice."""
    assert page.evaluate(QUEUE) == [
        *("asks A", "A: good"),
        *("asks C", "stops", "C: late", "asks D", "stops", "D: late", "asks E"),
        *("stops", "E: stopped", "asks E", "stops", "E: stopped"),
        *("asks G", "G: good", "asks H"),
    ]


def chosen(page: Page, select: str, value: str) -> None:
    page.locator(f"#{select}").select_option(value)


@pytest.mark.soak
def test_an_edit_is_compared_with_the_original_the_run_before_and_other_options(page: Page, server: Server) -> None:
    """The page of the comparison is in the place of the report, and its sentence below the editor. A link keeps what is asked for."""
    summary, messages, report = page.locator("#summary"), page.locator("#model-messages"), page.frame_locator("#report")
    hello = example("hello").source.read_text("utf-8")
    chosen(page, "against", "before")
    messages.get_by_text("There is no run before this one").wait_for()
    chosen(page, "against", "")
    page.locator("#run").click()
    page.locator("#status").get_by_text("done after").wait_for()
    chosen(page, "against", "before")
    messages.get_by_text("There is no run before this one").wait_for()
    write(page, "source", hello.replace("[8, ", "[80, "))
    messages.get_by_text("cycles more than the run before").wait_for()
    report.get_by_text("the run before: 01_hello.tpu --target tpu_v1 -O2").first.wait_for()
    assert re.match(
        r"End to end .* µs for an item \(-.* instead of 28\.33 µs \(\+.*; on the device [\d,]+ cycles instead of 2,967$",
        summary.inner_text(),
    )
    chosen(page, "against", "options")
    report.get_by_text("the compile with -O0: 01_hello.tpu --target tpu_v1 -O0").first.wait_for()
    write(page, "source", "param batch = 8\n" + hello.replace("[8, ", "[batch, "))
    page.locator("#other-batch").fill("0")
    page.locator("#other-batch").press("Tab")
    messages.get_by_text("the compile with batch 0: batch = 0 doesn't fit").wait_for()
    assert summary.inner_text().startswith("before: ")
    write(page, "source", hello.replace("[8, ", "[80, "))
    chosen(page, "against", "original")
    assert not page.locator("#other").is_visible()
    messages.get_by_text("cycles more than the original").wait_for()
    write(page, "source", hello.replace("x @ w", "x @ v"))
    place = messages.get_by_text("E0201: this version: nothing is named v")
    place.wait_for()
    assert messages.locator(".error").count() == 1
    write(page, "source", hello)
    messages.get_by_text("Both take 2,967 cycles").wait_for()
    page.locator("#link").click()
    page.locator("#status").get_by_text("the address holds").wait_for()
    address = page.url
    assert address.startswith(f"{server.address}#play=")
    page.goto("about:blank")
    page.goto(address)
    report.get_by_text("the original: 01_hello.tpu").first.wait_for()
    chosen(page, "against", "")
    report.get_by_role("heading", name="hello on tpu_v1").wait_for()


@pytest.mark.long
def test_a_pass_is_compared_with_the_compile_without_it(page: Page) -> None:
    kinds = asked(page)
    page.locator("#tab-python").click()
    chosen(page, "python-against", "without")
    page.locator("#run").click()
    page.locator("#difference-messages").get_by_text("Both take 2,967 cycles").wait_for()
    page.frame_locator("#difference").get_by_text("the compile with it: 01_hello.tpu --target tpu_v1 -O2 --pass pass.py").first.wait_for()
    write(page, "python", "raise ValueError('no')")
    page.locator("#run").click()
    page.locator("#python-messages .error").get_by_text("ValueError: no").wait_for()
    page.locator("#difference").wait_for(state="hidden")
    assert kinds == ["judge", "compare", "judge"]


@pytest.mark.long
def test_an_error_of_the_model_is_said_to_be_in_its_tab(page: Page) -> None:
    """Beside a pass, whose own errors lead to the pass."""
    write(page, "source", example("hello").source.read_text("utf-8").replace("x @ w", "x @ v"))
    page.locator("#model-messages .error").wait_for()
    page.locator("#tab-python").click()
    page.locator("#run").click()
    error = page.locator("#python-messages .error")
    error.get_by_text(re.compile("^Model tab, 01_hello.tpu:6:16 error E0201: ")).wait_for()
    error.get_by_role("button").click()
    assert page.locator("#tab-model").get_attribute("aria-selected") == "true"
    page.locator("#source .cm-editor.cm-focused").wait_for()


@pytest.mark.long
def test_a_comparison_of_a_link_runs_no_python(page: Page) -> None:
    """Of the run before it has a source and options, whatever else somebody has put into it."""
    hello = example("hello").source.read_text("utf-8")
    bodies = []
    page.on("request", lambda request: bodies.append(request.post_data_json) if request.url.endswith("/engine") else None)
    run = {
        "before-source": hello,
        "before-target": "abacus",
        "before-level": "0",
        "before-passes": "raise ValueError()",
        "before-batch": "",
    }
    link = {"tab": "python", "against": "before", "source": hello + "# mine\n", "python": "raise ValueError()", "python-against": "without"}
    page.evaluate(LINK, link | run)
    page.locator("#status").get_by_text("done after").wait_for()
    assert [(each["kind"], each["a"]["level"], each["a"]["target"]) for each in bodies] == [("compare", 0, "tpu_v1")]
    assert "raise" not in str(bodies)


@pytest.mark.long
def test_what_is_written_survives_a_reload(page: Page, server: Server) -> None:
    """A link stands before a draft and leaves it as it is; what is written over the link's text is there again in this tab."""
    source = page.locator("#source .cm-content")
    write(page, "source", "mine")
    page.goto("about:blank")
    page.goto(server.address)
    source.get_by_text("mine").wait_for()
    page.evaluate(LINK, {"program": "01_hello", "source": "of a link"})
    source.get_by_text("of a link").wait_for()
    write(page, "source", "written over it")
    page.reload()
    source.get_by_text("written over it").wait_for()
    page.goto("about:blank")
    page.goto(server.address)
    source.get_by_text("mine").wait_for()
    page.locator("#model-original").click()
    page.reload()
    source.get_by_text("model hello").wait_for()
    assert page.locator("#model-original").is_disabled()


@pytest.mark.soak
def test_what_is_written_over_a_link_is_kept_for_it(page: Page, server: Server) -> None:
    """Also when the plain page, or another link, is opened in between. The page says whose text it shows, and leads to the others."""
    source, bar = page.locator("#source .cm-content"), page.locator("#model-whose")
    link = """async (state) => {
      const { packed } = await import(new URL("link.js", location.href));
      return packed(state);
    }"""
    one, other = (server.address + page.evaluate(link, {"program": "01_hello", "source": text}) for text in ("one", "other"))
    write(page, "source", "mine")
    assert not bar.is_visible()
    page.goto("about:blank")
    page.goto(one)
    source.get_by_text("one", exact=True).wait_for()
    assert bar.inner_text().startswith("The link's text. ")
    write(page, "source", "over one")
    assert bar.inner_text().startswith("What you have written over the link's text. ")
    page.goto(server.address)
    source.get_by_text("mine", exact=True).wait_for()
    page.go_back()
    source.get_by_text("over one", exact=True).wait_for()
    page.evaluate("(address) => location.assign(address)", other)
    source.get_by_text("other", exact=True).wait_for()
    page.go_back()
    source.get_by_text("over one", exact=True).wait_for()
    bar.get_by_role("button", name="The link's text").click()
    source.get_by_text("one", exact=True).wait_for()
    page.keyboard.insert_text("locked")
    source.press("x")
    assert source.inner_text() == "one"
    assert page.locator("#model-original").is_disabled()
    bar.get_by_role("button", name="What you have written").click()
    source.get_by_text("over one", exact=True).wait_for()
    bar.get_by_role("button", name="Without the link").click()
    source.get_by_text("mine", exact=True).wait_for()
    assert page.url == server.address
    assert not bar.is_visible()
    page.go_back()
    source.get_by_text("over one", exact=True).wait_for()
    bar.get_by_role("button", name="The link's text").click()
    bar.get_by_role("button", name="Begin anew with this").click()
    write(page, "source", "over one again")
    page.reload()
    source.get_by_text("over one again", exact=True).wait_for()


@pytest.mark.long
def test_each_tab_keeps_its_own_draft(page: Page, server: Server) -> None:
    """A new tab begins with the one that was written last."""
    other = page.context.new_page()
    other.goto(server.address)
    other.locator("html[data-ready]").wait_for()
    write(other, "source", "of the other")
    write(page, "source", "of this one")
    for each, text in ((other, "of the other"), (page, "of this one")):
        each.reload()
        each.locator("html[data-ready]").wait_for()
        assert each.locator("#source .cm-content").inner_text() == text
    other.locator("#model-original").click()
    write(page, "source", "later")
    other.reload()
    other.locator("#source").get_by_text("model hello").wait_for()
    other.close()


@pytest.mark.long
def test_what_was_kept_may_be_anything_and_a_full_browser_is_told_of(page: Page) -> None:
    """Without a report before it, nothing is said to be from before."""
    write(page, "source", "model")
    page.evaluate(
        "Object.keys(sessionStorage).filter((key) => / at /.test(key)).forEach((key) => sessionStorage.setItem(key, '{ \"tab\": 5 }'))"
    )
    page.reload()
    page.locator("#model-messages .error").wait_for()
    assert page.locator("#summary").inner_text() == "no report yet"
    assert not page.locator("#notice").is_visible()
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }; }")
    page.locator("#source .cm-content").press("x")
    page.locator("#notice").get_by_text("The browser keeps no drafts").wait_for()


@pytest.mark.long
def test_a_report_that_is_not_there_is_made(page: Page, record: Record) -> None:
    page.route("**/reports/02_iris.html", lambda route: route.fulfill(status=404))
    chosen(page, "program", "02_iris")
    page.frame_locator("#report").get_by_role("heading", name="iris on tpu_v1").wait_for()
    assert "made when" not in page.locator("#summary").inner_text()
    page.unroute("**/reports/02_iris.html")
    record.faults[:] = [fault for fault in record.faults if "404" not in fault]


@pytest.mark.long
def test_python_that_breaks_down_or_can_not_be_loaded(page: Page) -> None:
    """With a worker that is none: the next request is answered by another one."""
    found = page.evaluate("""async () => {
      const { engine } = await import(new URL("engine.js", location.href));
      const made = [];
      globalThis.Worker = class extends EventTarget {
        constructor() { super(); this.number = made.push("begun"); }
        terminate() { made[this.number - 1] = "ended"; }
        postMessage(_, [port]) {
          port.onmessage = ({ data: { config } }) => port.postMessage(
            config ? [{ failed: "python.zip (404)" }, { ready: true }, { ready: true }][this.number - 1]
                   : this.number === 2 ? { failed: "RangeError" } : { answer: '"answer"' });
        }
      };
      const told = [];
      const own = engine({ engine: "pyodide" }, (words) => told.push(words));
      const said = [];
      for (let n = 0; n < 3; n += 1) said.push(await own.ask(() => ({})).catch((error) => `${error.constructor.name} ${error.message}`));
      return [told, said, made];
    }""")
    assert found == [
        ["Python isn't loaded: python.zip (404)"],
        ["Error Python can't be loaded: python.zip (404); reload the page to try again", "Broken ", "answer"],
        ["ended", "ended", "begun"],
    ]


@pytest.mark.long
def test_a_browser_that_keeps_nothing_keeps_drafts_as_long_as_the_page(page: Page, server: Server) -> None:
    closed = page.context.new_page()
    closed.add_init_script("""for (const name of ["localStorage", "sessionStorage"])
      Object.defineProperty(window, name, { get() { throw new Error("refused"); } });""")
    closed.goto(server.address)
    closed.locator("html[data-ready]").wait_for()
    write(closed, "source", "mine")
    for program in ("02_iris", "01_hello"):
        chosen(closed, "program", program)
    assert closed.locator("#source .cm-content").inner_text() == "mine"


LINK = """async (state) => {
  const { packed } = await import(new URL("link.js", location.href));
  location.hash = await packed(state);
}"""


def asked(page: Page) -> list[str]:
    """The kinds of the requests from now on."""
    kinds: list[str] = []
    page.on("request", lambda request: kinds.append(request.post_data_json["kind"]) if request.url.endswith("/engine") else None)
    return kinds


@pytest.mark.long
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


def fragment(content: bytes) -> str:
    packer = zlib.compressobj(9, wbits=-15)
    return "#play=" + base64.urlsafe_b64encode(packer.compress(content) + packer.flush()).decode().rstrip("=")


CUT = fragment(b'{"source": "' + bytes(range(35, 90)) + b'"}')[:-20]
DAMAGED = {
    "#junk": "none of this page",
    "#pl": "cut short or changed",
    "#play=%%%%": "cut short or changed",
    "#play=": "cut short or changed",
    CUT: "cut short or changed",
    fragment(b"null"): "holds nothing that was written",
    fragment(b"[1]"): "holds nothing that was written",
    fragment(b'{"source": 5}'): "its source is no text",
    fragment(b'{"source": "\\ud800"}'): "its source is no text",
    fragment(b'{"source":"' + b"a" * (1 << 25) + b'"}'): "too large",
}


@pytest.mark.long
def test_a_damaged_link_is_told_of_and_leaves_the_address(page: Page, server: Server) -> None:
    refused = """async (hash) => {
      const { unpacked } = await import(new URL("link.js", location.href));
      return unpacked(hash).then(() => "", (error) => error.message);
    }"""
    for hash, words in DAMAGED.items():
        assert words in page.evaluate(refused, hash)
    notice, source = page.locator("#notice"), page.locator("#source .cm-content")
    page.goto("about:blank")
    page.goto(f"{server.address}{CUT}")
    notice.get_by_text("The link can't be read: it is cut short or changed. Instead, what came with the page is shown.").wait_for()
    assert page.url == server.address
    source.get_by_text("model hello").wait_for()
    write(page, "source", "mine")
    page.evaluate(LINK, {"source": "of a link"})
    source.get_by_text("of a link").wait_for()
    assert not notice.is_visible()
    page.evaluate("location.hash = '#junk'")
    notice.get_by_text("The link can't be read: it is none of this page. Instead, your draft is shown.").wait_for()
    assert source.inner_text() == "mine"


@pytest.mark.long
def test_no_link_is_made_that_would_be_refused(page: Page, server: Server) -> None:
    digits = random.Random(0).choices(string.ascii_letters + string.digits + "+-", k=1 << 20)
    lines = "\n".join("".join(digits[place : place + 64]) for place in range(0, len(digits), 64))
    page.evaluate("(text) => localStorage.setItem('tpucc.playground puzzle 1', text)", lines)
    page.reload()
    page.locator("html[data-ready]").wait_for()
    page.locator("#link").click()
    page.locator("#status").get_by_text("what is written is too large for a link").wait_for()
    assert page.url == server.address


@pytest.mark.long
def test_a_link_of_another_version_says_what_it_names(page: Page) -> None:
    page.evaluate(LINK, {"program": "99_gone", "target": "tpu_v9", "level": "9", "source": "of a link"})
    words = "The link names program 99_gone, target tpu_v9, -O 9, which this page doesn't have. Others are chosen instead."
    page.locator("#notice").get_by_text(words).wait_for()


@pytest.mark.long
def test_the_handout_is_beside_the_puzzle(page: Page) -> None:
    page.locator("#tab-puzzle").click()
    page.locator("#task summary").click()
    cells = page.locator("#task td", has_text="synchronize engine=host wait=activation")
    assert cells.locator("code").inner_text() == "synchronize engine=host wait=activation"
    assert page.locator("#task").get_by_text("{{").count() == page.locator("#task").get_by_text("**").count() == 0


@pytest.mark.parametrize("word", ["constructor", "__proto__"])
def test_a_link_with_anything_in_it_shows_the_page(page: Page, word: object) -> None:
    page.evaluate(LINK, {"tab": word, "program": word, "source": word, "target": "tiny", "level": "9"})
    page.wait_for_function("() => document.getElementById('target').value === 'tiny'")
    assert page.locator("#panel-model").is_visible()
    assert page.locator("#level").input_value() == "2"


@pytest.mark.soak
def test_the_batch_is_offered_where_the_source_has_one(page: Page) -> None:
    """What stands in the field counts again when the param is there again. An error of the field is no place in the source."""
    batch, source = page.locator("#batch"), page.locator("#source .cm-content")
    assert batch.is_disabled()
    assert batch.get_attribute("placeholder") == "fixed"
    chosen(page, "program", "02_iris")
    given = source.inner_text()
    batch.fill("99999999999999999999")
    batch.press("Tab")
    page.locator("#model-messages .error").get_by_text("batch: error E0519").wait_for()
    assert page.locator("#source .cm-lintRange-error").count() == 0
    batch.fill("4")
    batch.press("Tab")
    page.locator("#summary").get_by_text(re.compile("^[^b]")).wait_for()
    write(page, "source", example("hello").source.read_text("utf-8"))
    page.frame_locator("#report").get_by_role("heading", name="hello on tpu_v1").wait_for()
    assert batch.is_disabled()
    write(page, "source", given.replace("\n\n", "\n"))
    page.frame_locator("#report").get_by_role("heading", name="iris on tpu_v1").wait_for()
    assert batch.input_value() == "4"
    assert batch.is_enabled()


@pytest.mark.long
def test_an_error_goes_with_what_it_is_about(page: Page) -> None:
    """A good report isn't dimmed, and has no error beside it; after Stop nothing is said about the text."""
    messages, summary, report = (page.locator(place) for place in ("#model-messages .error", "#summary", "#report"))
    chosen(page, "program", "02_iris")
    page.locator("#batch").fill("0")
    page.locator("#target").focus()
    messages.get_by_text("batch = 0 doesn't fit").wait_for()
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
    page.locator("#status").get_by_text("running … 1 s").wait_for()
    page.locator("#stop:enabled").click()
    messages.wait_for(state="detached")
    page.unroute("**/engine")
    assert summary.inner_text().startswith("before: ")


@pytest.mark.long
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
    page.reload()
    page.locator("html[data-ready]").wait_for()
    assert chosen.input_value() == second, "the tab and what was chosen in it are there again"
    chosen.select_option(first)
    assert text.inner_text() == "mine"
    original.click()
    assert text.inner_text() == given
    assert original.is_disabled()


@pytest.mark.long
def test_it_can_be_read_at_both_widths(page: Page) -> None:
    page.evaluate(LINK, {"source": example("hello").source.read_text("utf-8") + "# of a link\n", "against": "options"})
    page.frame_locator("#report").get_by_text("the compile with -O0").first.wait_for()
    page.locator("#model-whose").get_by_text("The link's text").wait_for()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert legibility_in_both_themes(page).faults == []


ENDED = """async () => {
  const workers = [];
  window.Worker = class extends EventTarget {
    constructor() { super(); workers.push(this); }
    postMessage(_, [port]) { this.port = port; }
    terminate() {}
  };
  const { engine } = await import("./engine.js");
  const python = engine({ engine: "pyodide" }, () => {});
  async function say(number, data) {
    workers[number].port.postMessage(data);
    await new Promise((heard) => setTimeout(heard, 10));
  }
  const asked = () => python.ask(() => ({})).catch((error) => `${error.constructor.name} after ${error.printed}`);
  const first = asked();
  await say(0, { ready: true });
  await say(0, { printed: "a" });
  await say(0, { printed: "b" });
  python.stop();
  await say(0, { printed: "c" });
  const second = asked();
  await say(0, { failed: "too late" });
  await say(0, { answer: '"of the first"' });
  await say(1, { ready: true });
  await say(1, { answer: '"of the second"' });
  return [await first, await second, workers.length];
}"""


@pytest.mark.long
def test_what_a_stopped_python_still_says_is_about_nothing(page: Page) -> None:
    assert page.evaluate(ENDED) == ["Stopped after ab", "of the second", 2]


RENEWED = """async () => {
  const workers = [];
  window.Worker = class extends EventTarget {
    constructor() { super(); workers.push(this); this.asked = []; }
    postMessage(_, [port]) {
      this.port = port;
      port.onmessage = ({ data: { config, request } }) => {
        if (config) port.postMessage({ ready: true });
        else this.asked.push(JSON.parse(request));
      };
    }
    terminate() {}
  };
  const given = () => workers.flatMap((worker) => worker.asked).length;
  let seen = 0;
  async function untilGiven() {
    for (let turn = 0; given() === seen && turn < 1000; turn++) await new Promise((heard) => setTimeout(heard, 5));
    seen = given();
  }
  const { engine } = await import("./engine.js");
  const python = engine({ engine: "pyodide" }, () => {});
  async function asked(request, answers = true) {
    const answer = python.ask(() => request).catch((error) => error.constructor.name);
    await untilGiven();
    if (answers) workers.at(-1).port.postMessage({ answer: JSON.stringify("answered") });
    return answers ? answer : [answer];
  }
  await asked({ passes: "one" });
  const [stopped] = await asked({ passes: "two" }, false);
  python.stop();
  const [compiled] = await asked({ source: "model" }, false);
  workers.at(-1).port.postMessage({ answer: JSON.stringify("compiled") });
  return [await stopped, await compiled, workers.map((worker) => worker.asked)];
}"""


@pytest.mark.long
def test_what_has_run_the_visitors_python_answers_nothing_else(page: Page) -> None:
    """A request that is stopped is given to no worker that comes later."""
    stopped, compiled, asked = page.evaluate(RENEWED)
    assert (stopped, compiled) == ("Stopped", "compiled")
    assert [each for each in asked if each] == [[{"passes": "one"}], [{"passes": "two"}], [{"source": "model"}]]
