"""How many steps a second the report's Machine view makes, each with a painted frame, and how long a frame takes while it plays: `python
benchmarks/steps.py [MODEL.tpu]`.

A step is the key `>`: the next instruction, which is held, so that all parts of the page show it. The browser draws as fast as it can, not
at a screen's rate. Of several runs of 100 steps the fastest counts: noise only ever slows. The times of the page's one thread are beside
it, as Chromium counts them; pixels are painted on others.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the browser's driver is the tests' own
from tests.support.chromium import VIEWPORT, chromium  # noqa: E402
from tests.support.stepping import STEP, Counted, counted  # noqa: E402
from tpucc.cli.main import main  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Page

MODEL = ROOT / "programs" / "09_cifar_resnet.tpu"
COUNT, RUNS = 100, 8
TIMES = {"script": "ScriptDuration", "styles": "RecalcStyleDuration", "layout": "LayoutDuration", "thread": "TaskDuration"}
"""Chromium's metrics, in seconds: the last of them is the whole of the page's thread."""


def measured(page: Page) -> tuple[float, Counted]:
    """Steps a second, and what the page's thread did for them."""
    with counted(page) as found:
        milliseconds = page.evaluate(STEP, [COUNT, True])
    return 1000 * COUNT / milliseconds, found


PLAYED = """async (count) => {
  const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "g", bubbles: true }));
  press();
  for (let number = 0; number < count; number++) await new Promise(requestAnimationFrame);
  press();
}"""
"""Plays for so many frames."""


def frames(page: Page) -> Counted:
    """What the page's thread did for frames of play."""
    with counted(page) as found:
        page.evaluate(PLAYED, COUNT)
    return found


def per(found: Counted) -> str:
    return ", ".join(f"{name} {1000 * found[metric] / COUNT:.1f}" for name, metric in TIMES.items())


def measure(model: Path) -> None:
    """Prints the fastest run for windows of two sizes."""
    print(f"{model.stem}: steps of the Machine view, each with its frame")
    with ExitStack() as stack:
        page_file = Path(stack.enter_context(TemporaryDirectory())) / "report.html"
        assert main(["report", str(model), "-o", str(page_file), "--quiet"]) == 0
        browser = stack.enter_context(chromium("--disable-frame-rate-limit", "--disable-gpu-vsync"))
        for width, height in (VIEWPORT, (1920, 1080)):
            page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
            page.add_init_script("""localStorage.setItem("tpucc.tour", "seen")""")
            page.goto(f"{page_file.as_uri()}#view=machine&instruction=100")
            rate, found = max((measured(page) for _ in range(RUNS)), key=lambda run: run[0])
            page.emulate_media(reduced_motion="no-preference")
            played = min((frames(page) for _ in range(RUNS)), key=lambda run: run["TaskDuration"])
            print(f"  {width} × {height}: {rate:.0f} a second; ms a step: {per(found)}; ms a frame of play: {per(played)}")
            page.close()


if __name__ == "__main__":
    measure(Path(sys.argv[1]) if len(sys.argv) > 1 else MODEL)
