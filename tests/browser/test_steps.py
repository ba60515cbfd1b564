"""Steps of the Machine view are quick: what a step makes the browser do, which doesn't depend on how busy the machine is.

`python benchmarks/steps.py` measures how many there are in a second.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cases import one_of
from tests.support.reports import PROGRAMS, report_of
from tests.support.stepping import STEP, counted
from tests.support.visits import settle

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.long]

STEPS = 40
WATCHED = """() => {
  window.addresses = [];
  const { replaceState } = history;
  history.replaceState = function (...told) { window.addresses.push(told[2]); replaceState.apply(this, told); };
}"""


@pytest.mark.parametrize(("width", "height"), one_of(2, [(1280, 800), (1920, 1080)]))
def test_a_step_is_laid_out_once_for_its_frame_and_never_before_it(width: int, height: int, open_page: OpenPage, tmp_path: Path) -> None:
    """Whoever asks for a place while the page changes has all of it laid out, for a frame that nobody sees."""
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine&instruction=30")
    page.set_viewport_size({"width": width, "height": height})
    settle(page)
    with counted(page) as alone:
        page.evaluate(STEP, [STEPS, False])
    assert alone["LayoutCount"] <= 4, "of the frames before and after the steps"
    with counted(page) as painted:
        page.evaluate(STEP, [STEPS, True])
    assert STEPS / 2 <= painted["LayoutCount"] <= 1.25 * STEPS


def test_quick_steps_write_few_addresses_and_the_last_one_is_right(open_page: OpenPage, tmp_path: Path) -> None:
    """A browser refuses more than 200 in ten seconds."""
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine&instruction=30")
    settle(page)
    page.evaluate(WATCHED)
    milliseconds = page.evaluate(STEP, [STEPS, False])
    page.wait_for_function("() => document.location.hash.endsWith(`instruction=${window.tpucc.selection().id}`)")
    addresses = page.evaluate("window.addresses")
    assert 1 <= len(addresses) <= 2 + milliseconds / 200
    assert addresses[-1] == page.evaluate("location.hash")
    page.evaluate("location.hash = 'view=machine&instruction=7'")
    settle(page)
    page.keyboard.press(">")
    page.keyboard.press("Escape")
    settle(page)
    assert page.evaluate("location.hash") == "#view=machine", "what is let go of isn't written later"
    page.wait_for_timeout(300)
    assert page.evaluate("location.hash") == "#view=machine"


FRAMES = """async (count) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (let number = 0; number < count; number++) await frame();
}"""


def test_a_frame_of_play_computes_styles_once_and_nothing_but_the_clock_is_laid_out(open_page: OpenPage, tmp_path: Path) -> None:
    """With container queries, a word that changes had the styles of the view computed three times."""
    page = open_page(report_of(PROGRAMS / "05_digits_cnn.tpu", tmp_path), "view=machine&instruction=30")
    page.emulate_media(reduced_motion="no-preference")
    page.select_option("select[aria-label=speed]", "0.25")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("g")
    page.evaluate(FRAMES, 5)
    event = page.inner_text(".cycle").split(",")[0]
    with counted(page) as played:
        page.evaluate(FRAMES, STEPS)
    assert page.inner_text(".cycle").split(",")[0] == event, "nothing begins or ends in these frames"
    page.keyboard.press("g")
    assert played["LayoutCount"] <= STEPS + 2
    assert played["RecalcStyleCount"] <= 1.5 * STEPS
