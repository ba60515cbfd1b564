"""`tpucc watch` in a browser: the report follows the source, keeps its selection, and shows errors at their lines; the editor saves."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from tests.support.cases import one_of
from tests.support.legibility import legibility_in_both_themes
from tests.support.playground import builder
from tests.support.visits import settle
from tests.support.watching import SMALL, WRONG, recipe
from tpucc.artifacts import artifacts
from tpucc.compilation import Compilation
from tpucc.runtime.runtime import Runtime
from tpucc.watch.server import Board, Server
from tpucc.watch.session import Session
from tpucc.watch.site import ICON, waiting

pytest.importorskip("tests.support.chromium", reason="there is nothing to drive a browser with")

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.support.visits import Record

pytestmark = pytest.mark.browser

HASH = "#view=layers&line=4"
COLOUR = "(element) => getComputedStyle(element).backgroundColor"


DRAWN: dict[str, Mapping[str, bytes]] = {}
"""The reports of what was watched, by its source."""


def draw(compilation: Compilation, runtime: Runtime) -> Mapping[str, bytes]:
    text = runtime.program.source_text
    if text not in DRAWN:
        DRAWN[text] = artifacts(compilation, runtime, "small", ("report",)).files
    return DRAWN[text]


@dataclass(frozen=True)
class Watched:
    """A model that is being watched."""

    model: Path
    server: Server

    @property
    def address(self) -> str:
        """Where the report is."""
        return f"{self.server.root}view"

    def save(self, text: str) -> None:
        """As careful editors do: beside first, then renamed."""
        beside = self.model.with_suffix(".new")
        beside.write_text(text)
        beside.replace(self.model)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    model = tmp_path / "small.tpu"
    model.write_text(SMALL)
    board, stop = Board(waiting(model.name)), Event()
    session = Session(recipe(model, draw), board, lambda outcome, seconds: None, pause=0.02)
    thread = Thread(target=session.follow, args=(stop,))
    thread.start()
    with Server(board, model, 0).serving(0.02) as server:
        yield Watched(model, server)
        stop.set()
    thread.join()
    shutil.rmtree(tmp_path / "build", ignore_errors=True)


@pytest.fixture
def page(tab: Page, record: Record, watched: Watched) -> Iterator[Page]:
    """The watched model's report, with a selection. It may ask this one server, and nobody else; a complaint at the console is a fault."""
    record.allowed |= {watched.server.root + path for path in ("view", "events", "report.html", "messages", ICON[1:], "explain/E0201")}
    tab.context.set_offline(False)
    tab.goto(watched.address + HASH)
    tab.get_by_text("return softmax(x @ w)").first.wait_for()
    yield tab
    tab.goto("about:blank")
    tab.context.set_offline(True)


def test_an_edit_becomes_the_page_and_the_selection_stays(page: Page, watched: Watched) -> None:
    watched.save(SMALL.replace("softmax(x @ w)", "relu(x @ w)"))
    page.get_by_text("return relu(x @ w)").first.wait_for()
    assert page.url == watched.address + HASH


def test_an_error_stands_at_its_line_in_view_until_it_is_mended(page: Page, watched: Watched) -> None:
    mark = page.locator("mark.error")
    watched.save("\n" * 500 + WRONG)
    page.locator(".line.marked b").get_by_text("504").wait_for()
    page.wait_for_function("() => { const y = document.querySelector('mark.error').getBoundingClientRect().y; return y > 0 && y < 800; }")
    watched.save(WRONG)
    page.locator(".line.marked b").get_by_text("4", exact=True).wait_for()
    assert mark.inner_text() == "v"
    carets = page.locator(".carets i").bounding_box()
    place = mark.bounding_box()
    assert carets is not None
    assert place is not None
    assert carets["x"] == pytest.approx(place["x"], abs=1)
    assert carets["y"] > place["y"]
    watched.save(SMALL)
    page.get_by_text("return softmax(x @ w)").first.wait_for()
    mark.wait_for(state="detached")
    assert page.url == watched.address + HASH


@pytest.mark.long
def test_an_error_can_be_read_in_both_themes_and_its_code_leads_to_its_explanation(page: Page, watched: Watched) -> None:
    watched.save(WRONG)
    page.locator("mark.error").wait_for()
    found = legibility_in_both_themes(page)
    assert found.count > 10
    assert found.faults == []
    page.get_by_role("link", name="E0201").click()
    page.get_by_text("# E0201: ").wait_for()


@pytest.mark.long
def test_the_last_good_report_is_a_link_away_and_says_that_it_is_old(page: Page, watched: Watched) -> None:
    watched.save(WRONG)
    page.get_by_role("link", name="see them alone").click()
    page.get_by_text("the last good report").click()
    corner = page.locator(".tpucc-watch")
    corner.get_by_text("1 error in the source as it is now").wait_for()
    for _ in "light", "dark":
        page.keyboard.press("t")
        assert corner.evaluate(COLOUR) == page.evaluate(f"({COLOUR})(document.body)"), "it has the colours of the page, not of the system"
    assert page.url == f"{watched.server.root}report.html{HASH}"
    corner.get_by_role("link").click()
    page.locator("mark.error").wait_for()
    assert page.url == watched.address + HASH


CALLED = """weights random(seed=1)
def dense(x, n):
    weight w: f32[x.shape[1], n]
    return x @ v
model small(x: f32[4, 6] in [-1.0, 1.0]):
    return dense(x, 3)
"""


@pytest.mark.long
def test_an_error_stands_in_the_last_report_with_the_call_that_led_there(page: Page, watched: Watched) -> None:
    """The report stays, dimmed, with its selection; in place of its source is the one as it is now."""
    watched.save(CALLED)
    pane = page.locator(".tpucc-errors")
    pane.locator("mark.error").wait_for()
    assert pane.locator(".marked b").all_inner_texts() == ["4", "6"]
    assert "in this call" in pane.inner_text()
    assert page.url == watched.address + HASH
    assert page.locator("#view-layers svg").first.is_visible()
    assert not page.locator("#source").is_visible()
    assert float(page.evaluate("getComputedStyle(document.getElementById('views')).opacity")) < 1
    watched.save(SMALL)
    pane.wait_for(state="detached")
    assert page.locator("#source").is_visible()


@pytest.mark.long
def test_the_tour_comes_with_the_report_and_not_with_errors(page: Page, watched: Watched) -> None:
    """Not by itself on a first visit, and not by its button: it would tell about a source that isn't shown."""
    page.goto(watched.address)
    page.evaluate("window.name = 'first visit'; localStorage.removeItem('tpucc.tour')")
    watched.save(WRONG)
    page.locator("mark.error").wait_for()
    assert [page.locator(place).is_visible() for place in (".tour", "#tour")] == [False, False]
    watched.save(SMALL)
    page.locator(".tour").wait_for()
    assert page.locator("#tour").is_visible()
    page.evaluate("window.name = ''")


@pytest.mark.long
def test_a_page_says_when_the_server_is_gone(page: Page, watched: Watched, record: Record) -> None:
    watched.server.board.close()
    watched.server.shutdown()
    watched.server.socket.close()
    page.get_by_text("tpucc watch can't be reached").wait_for()
    record.faults[:] = [fault for fault in record.faults if "net::ERR_" not in fault]  # which one depends on what was under way


# The page with the editor


TEXT = """() => document.querySelector("#source textarea")?.value
  ?? [...document.querySelectorAll("#source .cm-line")].map((line) => line.textContent).join("\\n")"""


CODEMIRROR, AREA = "CodeMirror", "a text area"
BOTH = pytest.mark.parametrize("editing", one_of(2, [CODEMIRROR, AREA]), indirect=True)
BOTH_AREA_FIRST = pytest.mark.parametrize("editing", one_of(2, [AREA, CODEMIRROR]), indirect=True)
"""A test with one editor in each run, and with the other one in `make soak`."""


@pytest.fixture(params=[CODEMIRROR, AREA])
def editing(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which editor the page has."""
    archive = tmp_path / "editor.zip"
    monkeypatch.setattr("tpucc.watch.page.EDITOR", archive)
    if request.param == CODEMIRROR:
        module = builder()
        try:
            module.write_editor(archive)
        except module.UnreachableError as error:
            pytest.skip(str(error))
    return str(request.param)


@pytest.fixture
def desk(editing: str, tab: Page, record: Record, watched: Watched) -> Iterator[Page]:
    """The page with the editor and the report; it may ask this one server."""
    paths = ("", "view", "changes", "events", "source", "diagnostics.json", ICON[1:], *(path[1:] for path in watched.server.page))
    record.allowed |= {watched.server.root + path for path in paths} | {watched.server.address}
    tab.context.set_offline(False)
    tab.goto(watched.server.address + HASH)
    tab.frame_locator("#report").get_by_text("return softmax(x @ w)").first.wait_for()
    tab.locator("#source").get_by_role("textbox").wait_for()
    yield tab
    tab.goto("about:blank")
    tab.context.set_offline(True)


def written(desk: Page) -> str:
    """The text in the editor."""
    return str(desk.evaluate(TEXT))


def write(desk: Page, text: str) -> None:
    """In the place of all that the editor has."""
    desk.locator("#source").get_by_role("textbox").click()
    desk.keyboard.press("Control+a")
    desk.keyboard.insert_text(text)


@pytest.mark.long
@pytest.mark.parametrize("editing", [AREA], indirect=True)
def test_the_text_area_numbers_its_lines_and_marks_those_with_errors(desk: Page, watched: Watched, editing: str) -> None:
    assert written(desk) == SMALL, editing
    numbers = desk.locator("#source .plain li")
    assert numbers.count() == SMALL.count("\n") + 1
    tops = "element => element.getBoundingClientRect().top"
    write(desk, "\n" * 200)
    desk.keyboard.press("Tab")
    assert written(desk) == "\n" * 200 + "    ", "Tab indents"
    assert numbers.count() == 201
    area = desk.locator("#source textarea")
    assert numbers.last.evaluate(tops) < area.evaluate("element => element.getBoundingClientRect().bottom"), "numbers follow the text"
    desk.keyboard.press("Escape")
    desk.keyboard.press("Tab")
    assert not area.evaluate("element => element === document.activeElement"), "after Escape, Tab leaves"
    write(desk, WRONG)
    desk.keyboard.press("Control+s")
    desk.locator("#source .plain li.error").wait_for()
    assert desk.evaluate("[...document.querySelectorAll('#source li')].findIndex(item => item.className === 'error') + 1") == 4


@pytest.mark.long
def test_an_edit_is_saved_when_it_is_asked_for_and_the_report_follows(desk: Page, watched: Watched, editing: str) -> None:
    """The last good report stays beside the error; the message leads to its place."""
    write(desk, WRONG)
    desk.get_by_text("not saved: Ctrl-S writes the file").wait_for()
    assert watched.model.read_text() == SMALL
    desk.keyboard.press("Control+s")
    message = desk.locator("#messages .error")
    message.wait_for()
    assert watched.model.read_text() == WRONG
    assert message.inner_text().startswith("small.tpu:4:24 error E0201: nothing is named v")
    report = desk.frame_locator("#report")
    report.locator(".tpucc-errors mark.error").wait_for()
    report.locator("#view-layers svg").first.wait_for()
    if editing == CODEMIRROR:
        assert desk.locator("#source .cm-lintRange-error").inner_text() == "v"
    message.get_by_role("button").click()
    desk.keyboard.press("Delete")
    desk.keyboard.insert_text("w")
    desk.locator("#save").click()
    message.wait_for(state="detached")
    report.get_by_text("return softmax(x @ w)").first.wait_for()
    assert watched.model.read_text() == SMALL
    assert desk.url == watched.server.address + HASH


@pytest.mark.long
@BOTH_AREA_FIRST
def test_a_save_says_what_it_has_changed(desk: Page, watched: Watched) -> None:
    """A sentence below the editor, and the page of the comparison in place of the report; errors leave it as it is."""
    compare, change, frame = desk.locator("#changes"), desk.locator("#change"), desk.frame_locator("#report")
    assert compare.is_disabled()
    watched.save(SMALL.replace("[4, 6]", "[400, 6]").replace("[4, 3]", "[400, 3]"))
    change.get_by_text("cycles more than the version before").wait_for()
    compare.click()
    frame.get_by_text("small.tpu, this version").first.wait_for()
    frame.get_by_role("link", name="Timelines").click()
    assert desk.url == watched.server.address + HASH, "it is the report's place that the address keeps"
    assert legibility_in_both_themes(desk).faults == []
    watched.save(WRONG)
    desk.locator("#messages .error").wait_for()
    assert not change.is_visible()
    frame.get_by_text("small.tpu, this version").first.wait_for()
    watched.save(SMALL)
    frame.get_by_role("heading", name=re.compile(r" µs \(-.* cycles instead of ")).wait_for()
    change.get_by_text("cycles fewer than the version before").wait_for()
    compare.click()
    frame.get_by_text("return softmax(x @ w)").first.wait_for()


@pytest.mark.long
@BOTH_AREA_FIRST
def test_a_change_on_the_disk_comes_into_the_editor_unless_something_is_unsaved(desk: Page, watched: Watched, record: Record) -> None:
    relu, tanh = (SMALL.replace("softmax", name) for name in ("relu", "tanh"))
    conflict = desk.get_by_text("The file has other text now.")
    watched.save(relu)
    while written(desk) != relu:
        settle(desk)
    desk.frame_locator("#report").get_by_text("return relu(x @ w)").first.wait_for()
    write(desk, WRONG)
    watched.save(tanh)
    conflict.wait_for()
    assert written(desk) == WRONG
    desk.keyboard.press("Control+s")
    desk.get_by_role("button", name="Save mine over it").click()
    conflict.wait_for(state="hidden")
    desk.locator("#messages .error").wait_for()
    assert watched.model.read_text() == WRONG
    write(desk, SMALL)
    watched.save(relu)
    conflict.wait_for()
    desk.get_by_role("button", name="Take the file's text").click()
    conflict.wait_for(state="hidden")
    assert (written(desk), watched.model.read_text()) == (relu, relu)
    record.faults[:] = [fault for fault in record.faults if "412" not in fault]


@pytest.mark.long
@BOTH_AREA_FIRST
def test_a_page_without_the_key_reads_and_cannot_save(desk: Page, watched: Watched, record: Record) -> None:
    desk.goto(watched.server.root)
    desk.locator("#source").get_by_role("textbox").wait_for()
    desk.frame_locator("#report").get_by_text("return softmax(x @ w)").first.wait_for()
    desk.get_by_text("this page can't save: open the address that tpucc watch printed").wait_for()
    write(desk, WRONG)
    desk.keyboard.press("Control+s")
    desk.get_by_text("not saved: open the address that tpucc watch printed").wait_for()
    assert watched.model.read_text() == SMALL
    write(desk, SMALL)
    desk.get_by_text("not saved").wait_for(state="hidden")
    record.faults[:] = [fault for fault in record.faults if "403" not in fault]


@pytest.mark.long
@BOTH
def test_a_file_that_is_deleted_can_be_written_anew(desk: Page, watched: Watched, record: Record) -> None:
    watched.model.unlink()
    gone = desk.get_by_text("The file has been deleted.")
    gone.wait_for()
    assert not desk.get_by_role("button", name="Take the file's text").is_visible()
    desk.get_by_role("button", name="Save mine", exact=True).click()
    gone.wait_for(state="hidden")
    assert watched.model.read_text() == written(desk) == SMALL
    desk.frame_locator("#report").get_by_text("return softmax(x @ w)").first.wait_for()
    watched.model.unlink()
    gone.wait_for()
    watched.save(WRONG)
    gone.wait_for(state="hidden")
    while written(desk) != WRONG:
        settle(desk)
    record.faults[:] = [fault for fault in record.faults if "404" not in fault]


@pytest.mark.long
@BOTH_AREA_FIRST
def test_a_deleted_file_that_returns_as_a_folder_is_told_of(desk: Page, watched: Watched, record: Record) -> None:
    watched.model.unlink()
    desk.get_by_text("The file has been deleted.").wait_for()
    watched.model.mkdir()
    told = desk.get_by_text(f"Can't read {watched.model}: is a directory. What stands here is in no file.")
    told.wait_for()
    assert not desk.get_by_text("The file has been deleted.").is_visible()
    assert not desk.get_by_role("button", name="Save mine").is_visible()
    watched.model.rmdir()
    watched.save(SMALL)
    told.wait_for(state="hidden")
    record.faults[:] = [fault for fault in record.faults if "404" not in fault and "409" not in fault]


@pytest.mark.long
@BOTH
def test_the_desk_can_be_read_at_both_widths(desk: Page, watched: Watched) -> None:
    watched.save("\n" * 60 + WRONG)
    desk.locator("#messages .error").wait_for()
    pane = desk.frame_locator("#report").locator(".tpucc-errors")
    pane.locator("mark.error").wait_for()
    for width in (1280, 390):
        desk.set_viewport_size({"width": width, "height": 800})
        assert pane.evaluate("(pane) => pane.offsetHeight / innerHeight") < 0.31, "the last good report stays in sight"
        assert desk.evaluate("document.documentElement.scrollWidth") <= width
        assert legibility_in_both_themes(desk).faults == []
