"""The page of a training in a browser: lines and boxes light each other, boxes open, and every text stands out and fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support.legibility import legibility
from tpucc.cli.main import main

if TYPE_CHECKING:
    from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser

SOURCE = """
param batch = 16
weights random(seed=0)
optimizer adam(rate=0.02)

model net(x: f32[batch, 4]) -> f32[batch, 3]:
    weight w: f32[4, 8]
    weight v: f32[8, 3]
    h = tanh(x @ w)
    return softmax(h @ v)

train(x: f32[batch, 4], label: i32[batch] in [0, 2]) -> f32[]:
    return cross_entropy(net(x), label)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    x = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
    np.savez(folder / "net_test.npz", x=x, labels=x[:, :3].argmax(axis=1))
    (folder / "net.tpu").write_text(SOURCE)
    assert main(["train", str(folder / "net.tpu"), "-o", str(folder / "out"), "--epochs", "3", "--cores", "2", "--quiet"]) == 0
    return folder / "out" / "report.html"


def test_lines_and_boxes_light_each_other(trained: Path, open_page: OpenPage) -> None:
    page = open_page(trained)
    page.locator("#line-9").click()
    titles = page.locator(".box.lit text").all_text_contents()
    assert {"tanh", "gradient of tanh", "matmul"} <= set(titles)
    assert page.locator(".picture.some").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".lit").count() == 0
    page.locator(".box", has_text="gradient of tanh").hover()
    assert page.locator("#line-9.lit").count() == 1


def test_a_box_opens_and_closes(trained: Path, open_page: OpenPage) -> None:
    page = open_page(trained)
    page.locator(".box.opens", has_text="next w").click()
    assert "next w: 13 operators" in str(page.locator("dialog").text_content())
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def deep_source(layers: int) -> str:
    """A network whose step is collapsed: its layers have functions in an order without equal periods."""
    weights = "\n".join(f"    weight w{n}: f32[4, 4]\n    weight b{n}: f32[4]" for n in range(layers))
    rows = "\n".join(f"    h = {('tanh', 'relu', 'sigmoid')[n * n % 3]}(h @ w{n} + b{n})" for n in range(layers))
    model = f"model net(x: f32[4, 4]) -> f32[4, 4]:\n{weights}\n    h = x\n{rows}\n    return softmax(h)\n"
    step = "train(x: f32[4, 4], label: i32[4] in [0, 3]) -> f32[]:\n    return cross_entropy(net(x), label)\n"
    return f"weights random(seed=0)\noptimizer adam(rate=0.02)\n{model}{step}"


@pytest.mark.long
def test_a_box_in_a_box_opens(tmp_path: Path, open_page: OpenPage) -> None:
    """Box 8 of what box 5 opens is the template `inside-train-5-8`."""
    (tmp_path / "net.tpu").write_text(deep_source(60))
    assert main(["train", str(tmp_path / "net.tpu"), "-o", str(tmp_path / "out"), "--epochs", "0", "--quiet"]) == 0
    page = open_page(tmp_path / "out" / "report.html")
    nested = page.evaluate("[...document.querySelectorAll('template')].map(({ id }) => id).find((id) => /-\\d+-\\d+$/.test(id))")
    outer, inner = nested.removeprefix("inside-train-").split("-")
    page.locator(f"#train-b{outer}.opens").click()
    assert page.locator("dialog .box").count() > 1
    page.locator(f"dialog #train-{outer}-b{inner}.opens").click()
    assert page.locator(f"dialog #train-{outer}-{inner}-b0").count() == 1
    assert page.locator(f"dialog #train-{outer}-b{inner}").count() == 0, "it stands in the place of the other"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_text_stands_out_and_the_page_is_no_wider_than_the_window(
    scheme: str, width: int, trained: Path, open_page: OpenPage
) -> None:
    page = open_page(trained)
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    assert page.evaluate("(pane => pane.scrollWidth - pane.clientWidth)(document.getElementById('source'))") == 0, "no line is cut"
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    found = legibility(page)
    assert found.count > 100
    heights = page.locator(".settings td:first-child").evaluate_all("(cells) => cells.map((cell) => cell.getBoundingClientRect().height)")
    assert max(heights[:4]) < min(heights[:4]) + 2, "no name is broken"
    assert found.faults == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_button_changes_the_theme(trained: Path, open_page: OpenPage) -> None:
    page = open_page(trained)
    page.emulate_media(color_scheme="light")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"
