"""Fixtures that drive a real browser. Without one, the tests that ask for them are skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import reports
from tests.support.chromium import VIEWPORT, NoBrowserError, chromium
from tests.support.visits import Record, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PATIENCE = 30_000
"""Milliseconds after which a page or an element that doesn't come is a failure."""

TOURED = """if (window.name !== "first visit") try { localStorage.setItem("tpucc.tour", "seen"); } catch {}"""
"""The tour has been seen, but in a tab of this name."""

OpenPage = Callable[..., "Page"]


@pytest.fixture(scope="session", autouse=True)
def shared_reports(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What one process of this run has made, the others take."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        reports.SHARED[:] = [tmp_path_factory.getbasetemp().parent / "reports"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with ExitStack() as stack:
        try:
            running = stack.enter_context(chromium())
        except NoBrowserError as reason:
            pytest.skip(str(reason))
        yield running


@pytest.fixture(scope="session")
def context(browser: Browser, kept: Record) -> Iterator[BrowserContext]:
    """One for all tests of this process: a new one, with a new renderer, takes four times as long as the page in it."""
    width, height = VIEWPORT
    made = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    made.set_default_timeout(PATIENCE)
    made.add_init_script(TOURED)
    kept.watch(made)
    made.new_page()
    yield made
    made.close()


@pytest.fixture(scope="session")
def kept() -> Record:
    return Record()


@pytest.fixture
def record(kept: Record) -> Iterator[Record]:
    """What the test's pages did; the test fails at its end when there are faults."""
    kept.clear()
    yield kept
    if kept.faults:
        pytest.fail("\n".join(kept.faults))


@pytest.fixture
def tab(context: BrowserContext, record: Record) -> Iterator[Page]:
    """The tab that every test has, at 1280×800, light, without motion; it is empty, as are the pages of the test when it ends."""
    first, (width, height) = context.pages[0], VIEWPORT
    first.set_viewport_size({"width": width, "height": height})
    first.emulate_media(media="screen", color_scheme="light", reduced_motion="reduce")
    first.mouse.move(-1, -1)
    yield first
    for page in context.pages:
        settle(page)
    for page in context.pages[1:]:
        page.close()
    first.goto("about:blank")


@pytest.fixture
def open_page(tab: Page, record: Record, tmp_path: Path) -> OpenPage:
    """`open_page(page, fragment="")` opens a file, or a text of HTML, in place of what was open; `fragment` is what follows the # of its
    address. `beside=True` opens it in a tab of its own, and takes five times as long."""

    def opened(page: Path | str, fragment: str = "", *, beside: bool = False) -> Page:
        path = page if isinstance(page, Path) else _written(page, tmp_path)
        address = path.resolve().as_uri()
        record.allowed.add(address)
        place = tab.context.new_page() if beside else tab
        if place.url != "about:blank":
            place.goto("about:blank")  # or else an address that differs in its fragment only would load nothing
        place.goto(f"{address}#{fragment}" if fragment else address)
        return place

    return opened


def _written(html: str, folder: Path) -> Path:
    path = folder / f"page-{len(list(folder.glob('page-*')))}.html"
    path.write_text(html, "utf-8")
    return path
