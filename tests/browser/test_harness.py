"""The harness sees what it is there to see: a page that complains, throws, asks or calls out fails its test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.chromium import VARIABLE, NoBrowserError, find_chromium
from tests.support.visits import Record, settle

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser

FAULTY = {
    "console error": "console.error('broken')",
    "console warning": "console.warn('odd')",
    "console assert": "console.assert(false)",
    "page error": "nowhere.nothing()",
    "page error: late": "Promise.reject(new Error('late'))",
    "dialog": "alert('stop')",
    "request: GET http": "fetch('http://example.invalid/x').catch(() => 0)",
    "request: GET file": "document.head.append(Object.assign(document.createElement('script'), {src: 'other.js'}))",
    "request: POST": "navigator.sendBeacon('http://example.invalid/x', 'x')",
    "socket": "new WebSocket('ws://example.invalid/')",
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_fault_is_recorded(fault: str, open_page: OpenPage, record: Record) -> None:
    settle(open_page(f"<!doctype html><title>t</title><body><script>{FAULTY[fault]}</script>"))
    found = list(record.faults)
    record.pause()  # the browser may complain of a request after the page has been drawn
    assert any(entry.startswith(fault) for entry in found), found


def test_a_quiet_page_has_no_faults(open_page: OpenPage, record: Record) -> None:
    page = open_page("<!doctype html><title>t</title><p>still</p><script>console.log('here')</script>", "p=1")
    settle(page)
    assert page.inner_text("body") == "still"
    state = "[innerWidth, innerHeight, location.hash, matchMedia('(prefers-reduced-motion)').matches]"
    assert page.evaluate(state) == [1280, 800, "#p=1", True]
    assert (record.console, record.faults) == (["here"], [])


def test_data_in_the_page_is_no_request(open_page: OpenPage) -> None:
    picture = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs="
    page = open_page(f"<!doctype html><title>t</title><img src='{picture}'>")
    assert page.evaluate("document.images[0].naturalWidth") == 1


def program(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_browser_is_the_one_that_is_named_else_the_first_on_the_path(tmp_path: Path) -> None:
    later, own = program(tmp_path, "google-chrome"), program(tmp_path, "mine")
    assert find_chromium({"PATH": str(tmp_path)}) == later
    first = program(tmp_path, "chromium")
    assert find_chromium({"PATH": str(tmp_path)}) == first
    assert find_chromium({"PATH": str(tmp_path), VARIABLE: "mine"}) == own
    assert find_chromium({"PATH": "", VARIABLE: own}) == own


def test_a_browser_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoBrowserError, match=VARIABLE):
        find_chromium({"PATH": str(tmp_path)})
    with pytest.raises(FileNotFoundError, match="gone"):
        find_chromium({"PATH": str(tmp_path), VARIABLE: str(tmp_path / "gone")})
