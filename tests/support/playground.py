"""The playground's page, built for tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.support.visits import Record
    from tpucc.playground.server import Server

BUILD = Path(__file__).resolve().parents[2] / "docs" / "playground" / "build_playground.py"


def builder() -> ModuleType:
    """`docs/playground/build_playground.py` as a module."""
    spec = importlib.util.spec_from_file_location("playground_build", BUILD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(folder: Path, pyodide: str = "") -> Path:
    """The page, with Pyodide if it is given, and the reports of two programs. Skips the test where CodeMirror can't be had."""
    module = builder()
    try:
        if pyodide:
            module.build(folder, pyodide, ["hello", "iris"])
        else:
            module.write_page(folder, ["hello", "iris"])
    except module.UnreachableError as error:
        pytest.skip(str(error))
    return folder


@contextmanager
def visited(tab: Page, record: Record, server: Server) -> Iterator[Page]:
    """The page, with its first report. It asks its server for its own files and for work, and nobody else; nothing of it is kept."""
    files = (str(path.relative_to(server.folder)) for path in server.folder.rglob("*") if path.is_file())
    record.allowed |= {server.address + path for path in ("", "config.json", "engine", "stop", *files)}
    tab.context.set_offline(False)
    tab.goto(server.address)
    tab.locator("html[data-ready]").wait_for()
    tab.frame_locator("#report").get_by_role("heading").first.wait_for()
    yield tab
    tab.unroute_all(behavior="ignoreErrors")
    tab.evaluate("() => [localStorage, sessionStorage].forEach((kept) => kept.clear())")
    tab.goto("about:blank")
    for other in tab.context.pages[1:]:  # what it still asks for would be refused
        other.close()
    tab.context.set_offline(True)
    record.faults[:] = [fault for fault in record.faults if "GET blob:" not in fault]  # the report that the page has put into the frame
