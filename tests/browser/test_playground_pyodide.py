"""The playground with Python in the browser: the same bits as here, and all of it without a network after the first visit.

They run where `TPUCC_PYODIDE` names a folder with Pyodide's packages numpy and msgspec. The rest of Pyodide is in it, or from the npm
registry.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.pages_over_http import served
from tests.support.playground import built
from tpucc.interop.programs import example
from tpucc.playground.engine import answered, compiled
from tpucc.playground.requests import Model

pytest.importorskip("tests.support.chromium", reason="there is nothing to drive a browser with")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

FOLDER = os.environ.get("TPUCC_PYODIDE", "")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.skipif(not FOLDER, reason="TPUCC_PYODIDE names no folder with Pyodide's packages numpy and msgspec"),
]
PATIENCE = 180_000
"""Milliseconds: Python starts in seconds where nothing else runs, and in far more where much does."""
USUAL = ("hello", "digits_cnn", "quadric")
"""Asked for in each run: dense layers, convolutions and pools with trained weights, and constants of the source with transposes.
The others, in which these are more and larger, take Python in the browser half a minute, and are asked for in `make soak`."""
NAMES = (*USUAL, "iris", "wine", "digits_mlp", "digits_lstm", "mnist_cnn", "fashion_cnn", "mlp_mixer_block", "dlrm")
ASK = """async ([requests, other]) => {
  const config = { ...await (await fetch("config.json")).json(), ...other };
  const worker = new Worker("worker.js", { type: "module" });
  const { port1: port, port2 } = new MessageChannel();
  worker.postMessage(null, [port2]);
  const [answers, loading] = [[], []];
  await new Promise((done, failed) => {
    port.onmessage = ({ data }) => {
      if (data.loading) loading.push(data.loading);
      if (data.failed) failed(new Error(data.failed));
      if (data.answer) answers.push(JSON.parse(data.answer));
      if (answers.length === requests.length) done();
      else if (data.ready || data.answer) port.postMessage({ request: JSON.stringify(requests[answers.length]) });
    };
    port.postMessage({ config });
  });
  worker.terminate();
  return [loading.join("; "), answers.map(({ program, ...rest }) => rest)];
}"""

LEAK = """
from pyodide.ffi import create_proxy, to_js
from pyodide.code import run_js

def js():
    import js
def pyodide_js():
    import pyodide_js
def code():
    run_js("1")
def function():
    to_js([1]).constructor.constructor("return globalThis")
def names():
    base = to_js([1]).constructor.getPrototypeOf if False else to_js([1]).constructor
    base.__proto__.__proto__.fetch = create_proxy(print)

for way in js, pyodide_js, code, function, names:
    try:
        way()
        print(way.__name__, "leads out")
    except BaseException as error:
        print(way.__name__, type(error).__name__)
"""
"""What Python could send with, or answer in tpucc's place."""
WAYS_OUT = """async (address) => {
  const worker = new Worker(URL.createObjectURL(new Blob([`
    try { await fetch(${JSON.stringify(address)}, { mode: "no-cors" }); postMessage("sent"); } catch (error) { postMessage(error.name); }
  `], { type: "text/javascript" })), { type: "module" });
  const said = await new Promise((done) => worker.addEventListener("message", ({ data }) => done(data)));
  worker.terminate();
  return said;
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by the first process of the run that asks for it; another one waits, as the same work takes it longer."""
    base = tmp_path_factory.getbasetemp()
    page = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "playground"
    made = page.with_suffix(".made")
    try:
        page.mkdir()
    except FileExistsError:
        end = time.monotonic() + PATIENCE / 1000
        while not made.exists() and time.monotonic() < end:
            time.sleep(0.2)
        if not (page / "index.html").is_file():
            pytest.skip("another process couldn't make the page")
        return page
    try:
        return built(page, FOLDER)
    finally:
        made.touch()


@pytest.fixture
def visitor(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that has never been here: with a service worker and caches of its own."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


def opened(visitor: BrowserContext, address: str) -> Page:
    page = visitor.new_page()
    page.goto(address)
    page.locator("html[data-ready]").wait_for()
    assert page.locator("#status").inner_text() == "ready"
    return page


@pytest.mark.soak
def test_the_programs_are_the_same_to_the_byte(folder: Path, visitor: BrowserContext, pytestconfig: pytest.Config) -> None:
    """On a processor of 32 bits, too, as WebAssembly is one. So are the reports."""
    sources = [example(name).source for name in (NAMES if pytestconfig.getoption("soak") else USUAL)]
    models = {source.stem: Model(source.read_text("utf-8"), source.name) for source in sources}
    requests: list[dict[str, Any]] = [{"kind": "compile", "source": model.source, "name": model.name} for model in models.values()]
    iris = example("iris").source.read_text("utf-8")
    sides = {"a": {"source": iris, "level": 0}, "b": {"source": iris}}
    requests.append({"kind": "compare", **sides})
    with served(folder) as address:
        page = visitor.new_page()
        page.goto(f"{address}licences.txt")
        loading, found = page.evaluate(ASK, [requests, {}])
    assert "from its beginning" not in loading, "Python begins from the memory that was kept when the page was built"
    assert found.pop() == json.loads(answered(json.dumps(requests.pop()))), "a comparison"
    for answer, (name, model) in zip(found, models.items(), strict=True):
        here = compiled(model)
        assert answer["diagnostics"] == here.diagnostics == []
        assert (name, answer["stats"]["cycles"], answer["digest"]) == (name, here.stats["cycles"], here.digest)
        assert answer["report"] == here.report, name


@pytest.mark.soak
def test_a_memory_of_another_pyodide(folder: Path, visitor: BrowserContext) -> None:
    """Python starts from its beginning."""
    source = example("hello").source.read_text("utf-8")
    with served(folder) as address:
        page = visitor.new_page()
        page.goto(f"{address}licences.txt")
        changes = {"wasm": "0" * 64}
        loading, [found] = page.evaluate(ASK, [[{"kind": "compile", "source": source}], changes])
    assert "from its beginning" in loading
    assert found["diagnostics"] == []


@pytest.fixture
def own_folder(folder: Path, tmp_path: Path) -> Path:
    """A copy of the page, to be damaged."""
    return Path(copytree(folder, tmp_path / "page"))


MISSING = [
    ("python.zip", b"<p>log in", "Python can't be loaded: python.zip .502 not the file"),
    ("offers.json", b"", "This page can't begin, as it lacks offers.json .404"),
    ("queue.js", b"", "This page can't begin, as a script of it can't be loaded"),
    ("pyodide/pyodide.asm.wasm", b"", "Python can't be loaded: .*pyodide.asm.wasm .404"),
]
"""A file that is missing, or what a network puts in its place, and what is said."""


def come_back(visitor: BrowserContext, address: str, folder: Path, path: str, content: bytes, said: str) -> Page:
    """A page that says what is missing; when it is there again, so is the page."""
    right = (folder / path).read_bytes()
    (folder / path).unlink()
    if content:
        (folder / path).write_bytes(content)
    page = visitor.new_page()
    page.goto(address)
    page.locator("#notice:visible, #status").get_by_text(re.compile(said)).wait_for()
    (folder / path).write_bytes(right)
    page.reload()
    page.locator("html[data-ready]").wait_for()
    assert page.locator("#status").inner_text() == "ready"
    return page


@pytest.mark.soak
def test_a_visit_and_one_without_a_network(folder: Path, visitor: BrowserContext) -> None:
    """An error at its place, a pass, ways out of Python and endless calls, an endless loop that is stopped. Then the same page from what
    the browser has kept, with the drafts. Each start of Python takes seconds: two are enough."""
    with served(folder) as address:
        page = opened(visitor, address)
        page.locator("#source .cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("wrong")
        page.locator("#source .cm-lintRange-error").get_by_text("wrong").wait_for()
        page.locator("#model-original").click()
        page.locator("#program").select_option("02_iris")
        page.locator("#tab-python").click()
        page.locator("#run").click()
        page.locator("#python-messages .right").get_by_text("02_iris.tpu: equal").wait_for()
        write_python(page, f"{LEAK}\ndef call(*all):\n    return call()\ncall()\n")
        page.locator("#run").click()
        page.locator("#python-messages .error").get_by_text("RecursionError").wait_for()
        assert "names " in page.locator("#python-messages").inner_text()
        assert "leads out" not in page.locator("#python-messages").inner_text()
        write_python(page, "print('so far')\nwhile True: pass")
        page.locator("#run").click()
        page.locator("#status").get_by_text("running").wait_for()
        page.wait_for_timeout(4_000)  # in which Python comes to the loop
        page.locator("#stop").click()
        page.locator("#python-messages").get_by_text("so far").wait_for()
        page.locator("#status").get_by_text("stopped").wait_for()
        with served(folder) as elsewhere:
            assert page.evaluate(WAYS_OUT, elsewhere) == "TypeError", "a worker has the page's policy"
        page.close()
    visitor.set_offline(True)
    page = opened(visitor, address)
    page.locator("#python").get_by_text("while True: pass").wait_for()
    page.locator("#tab-model").click()
    assert page.locator("#program").input_value() == "02_iris", "a visit begins where the last one ended"
    page.locator("#program").select_option("01_hello")
    page.locator("#against").select_option("options")
    page.locator("#status").get_by_text("done").wait_for()
    assert page.locator("#summary").inner_text() == "End to end both take 28.33 µs; on the device 2,967 cycles in both"


def write_python(page: Page, text: str) -> None:
    """In place of what stands in the editor of the Python tab."""
    page.locator("#python .cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


@pytest.mark.soak
def test_a_puzzle_is_checked_and_a_python_that_breaks_down_begins_anew(folder: Path, visitor: BrowserContext) -> None:
    with served(folder) as address:
        page = opened(visitor, address)
        page.locator("#tab-puzzle").click()
        page.locator("#run").click()
        page.locator("#puzzle-messages .error").wait_for()
        page.locator("#tab-python").click()
        write_python(page, "eval('(' * 300 + '1' + ')' * 300)")
        page.locator("#run").click()
        page.locator("#python-messages .error").get_by_text("Python has broken down").wait_for()
        write_python(page, "print(2 + 3)")
        page.locator("#run").click()
        page.locator("#python-messages").get_by_text("printed:").wait_for()
        assert page.locator("#python-messages pre").inner_text().split() == ["printed:", "5"]


@pytest.mark.soak
@pytest.mark.parametrize(("path", "content", "said"), MISSING)
def test_what_is_missing_is_said_and_is_not_kept(path: str, content: bytes, said: str, own_folder: Path, visitor: BrowserContext) -> None:
    with served(own_folder) as address:
        come_back(visitor, address, own_folder, path, content, said).close()
