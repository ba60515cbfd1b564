"""Screenshots of the report, of the waves, and of what `tpucc watch` shows, taken in a headless Chromium by docs/generate.py."""

from __future__ import annotations

import base64
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from palette_png import Octets, palette_png

from tpucc.artifacts import artifacts
from tpucc.cli.main import main
from tpucc.options import Options
from tpucc.watch.build import Built, Recipe, attempt
from tpucc.watch.page import EDITOR
from tpucc.watch.server import Board, Server
from tpucc.watch.site import view_of

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # the browser's driver is the tests' own
from tests.support.chromium import VIEWPORT, NoBrowserError, chromium  # noqa: E402
from tests.support.visits import settle  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MODEL = DOCS.parent / "programs" / "05_digits_cnn.tpu"
PICTURES = DOCS / "pictures"

Action = Callable[["Page"], None]
"""What is done on the page before the picture is taken."""


def scrolled_to(selector: str) -> Action:
    return lambda page: page.evaluate("selector => document.querySelector(selector).scrollIntoView()", selector)


def click(selector: str) -> Action:
    return lambda page: page.click(selector)


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture `report-NAME.png`: what follows the # of the page's address, what is done then, and light or dark."""

    name: str
    fragment: str = ""
    actions: tuple[Action, ...] = ()
    dark: bool = False


SHOTS = (
    Shot("light", "view=graph&line=18"),
    Shot("dark", "view=graph&line=18", dark=True),
    Shot("summary"),
    Shot("graph", "view=graph"),
    Shot("layers", "view=layers&layer=3"),
    Shot("program", "view=program"),
    Shot("tiles", "view=tiles&tile=3.4"),
    Shot("assembly", "view=assembly&instruction=100"),
    Shot("machine", "view=machine&instruction=300"),
    Shot("byte", "view=byte"),
    Shot("passes", "view=passes&line=18", (click("#view-passes button:has-text('fuse-bias')"),)),
    Shot("roofline", "view=roofline&layer=3"),
    Shot("whatif", "view=whatif", (click("#view-whatif tr[data-field=host_bandwidth] button"),)),
    Shot("path", "view=whatif", (click("#why"),)),
    Shot("error", "view=error&layer=3"),
    Shot("ranges", "view=error&layer=3", (scrolled_to("#ranges"),)),
)

SLIP = ("flatten(h)", "flaten(h)")
"""What is typed wrong for the picture of `tpucc watch`."""

PIXELS = """async (png) => {
  const bytes = Uint8Array.from(atob(png), (character) => character.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes]));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const pieces = [];
  for (let at = 0; at < data.length; at += 32768) pieces.push(String.fromCharCode(...data.subarray(at, at + 32768)));
  return btoa(pieces.join(""));
}"""
"""Decodes a PNG: the browser can, and the project then needs no library that does. Gives red, green, blue and opacity of each pixel."""


def take_screenshots() -> str:
    """Writes the pictures; returns a sentence that says what was done. Without a browser the old ones stay."""
    try:
        with TemporaryDirectory() as folder, chromium() as browser:
            page = Path(folder) / "report.html"
            if main(["report", str(MODEL), "-o", str(page), "--quiet"]) != 0:
                raise RuntimeError(f"{MODEL.name} does not compile")
            for shot in SHOTS:
                (PICTURES / f"report-{shot.name}.png").write_bytes(_taken(browser, page.as_uri(), shot))
            waves = Path(folder) / "waves.html"
            if main(["systolic", "--tiles", "2", "-o", str(waves)]) != 0:
                raise RuntimeError("there is no page of waves")
            (PICTURES / "systolic-page.png").write_bytes(_taken(browser, waves.as_uri(), Shot("page", "cycle-12")))
            if EDITOR.is_file():
                with _watched(Path(folder)) as address:
                    (PICTURES / "watch-error.png").write_bytes(_taken(browser, address, Shot("error", actions=(_error_in_frame,))))
    except NoBrowserError as reason:
        return f"the screenshots are the old ones: {reason}"
    watched = "those of the waves and of the watch" if EDITOR.is_file() else "that of the waves; for that of the watch, make editor first"
    return f"{len(SHOTS)} screenshots of the report are new, and {watched}"


@contextmanager
def _watched(folder: Path) -> Iterator[str]:
    """The address at which `tpucc watch` shows the model after a slip of the pen, as long as the context lasts."""
    for file in MODEL.parent.glob(f"{MODEL.stem}*"):
        shutil.copy(file, folder)
    recipe = Recipe(
        folder / MODEL.name,
        folder / "build",
        Options,
        lambda compilation, runtime: artifacts(compilation, runtime, MODEL.stem, ("report",)).files,
    )
    good = attempt(recipe)
    recipe.path.write_text(recipe.path.read_text("utf-8").replace(*SLIP), "utf-8")
    board = Board(view_of(MODEL.name, attempt(recipe), good if isinstance(good, Built) else None))
    with Server(board, recipe.path, 0).serving(0.02) as server:
        yield server.address


def _error_in_frame(page: Page) -> None:
    page.frame_locator("#report").locator("mark.error").wait_for()
    page.locator("#messages .error").wait_for()


def _taken(browser: Browser, address: str, shot: Shot) -> bytes:
    width, height = VIEWPORT
    scheme = "dark" if shot.dark else "light"
    offline = address.startswith("file:")
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", offline=offline)
    page.add_init_script("try { localStorage.setItem('tpucc.tour', 'seen'); } catch {}")
    page.goto(f"{address}#{shot.fragment}" if shot.fragment else address)
    settle(page)
    if page.evaluate("location.hash.slice(1)") != shot.fragment:
        raise RuntimeError(f"the page has no {shot.fragment}")
    for action in shot.actions:
        action(page)
    settle(page)
    picture = palette_png(_pixels(browser, page.screenshot()))
    page.close()
    return picture


def _pixels(browser: Browser, png: bytes) -> Octets:
    """The pixels of a picture of the size of the window, uint8 [height, width, 3]."""
    width, height = VIEWPORT
    blank = browser.new_page()
    data = base64.b64decode(blank.evaluate(PIXELS, base64.b64encode(png).decode()))
    blank.close()
    return np.frombuffer(data, np.uint8).reshape(height, width, 4)[:, :, :3]
