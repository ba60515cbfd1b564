"""Fixtures that drive a real browser. Without one, the tests that ask for them are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.chromium import VIEWPORT, NoBrowserError, chromium
from tests.support.visits import Record, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PATIENCE = 10_000
"""Milliseconds after which a page or an element that doesn't come is a failure."""

OpenPage = Callable[..., "Page"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with ExitStack() as stack:
        try:
            running = stack.enter_context(chromium())
        except NoBrowserError as reason:
            pytest.skip(str(reason))
        yield running


@pytest.fixture
def record() -> Iterator[Record]:
    """What the test's pages did; the test fails at its end when there are faults."""
    kept = Record()
    yield kept
    if kept.faults:
        pytest.fail("\n".join(kept.faults))


@pytest.fixture
def context(browser: Browser, record: Record) -> Iterator[BrowserContext]:
    width, height = VIEWPORT
    made = browser.new_context(viewport={"width": width, "height": height}, offline=True, reduced_motion="reduce")
    made.set_default_timeout(PATIENCE)
    record.watch(made)
    yield made
    for page in made.pages:
        settle(page)
    made.close()


@pytest.fixture
def open_page(context: BrowserContext, record: Record, tmp_path: Path) -> OpenPage:
    """`open_page(page, fragment="")` opens a file, or a text of HTML, at 1280×800; `fragment` is what follows the # of its address."""

    def opened(page: Path | str, fragment: str = "") -> Page:
        path = page if isinstance(page, Path) else _written(page, tmp_path)
        address = path.resolve().as_uri()
        record.allowed.add(address)
        tab = context.new_page()
        tab.goto(f"{address}#{fragment}" if fragment else address)
        return tab

    return opened


def _written(html: str, folder: Path) -> Path:
    path = folder / f"page-{len(list(folder.glob('page-*')))}.html"
    path.write_text(html, "utf-8")
    return path
