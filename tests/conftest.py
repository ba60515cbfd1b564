"""Options of the test suite."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest

from tests.support.command_line import SMALL


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected outputs instead of comparing")
    parser.addoption("--soak", action="store_true", help="run the long random tests too")


def pytest_configure(config: pytest.Config) -> None:
    """What all processes of the tests inherit.

    Every worker has its processor, and numpy isn't imported yet: a product in two threads waits for the other worker's. Child processes
    keep the bytecode of what they import, even where the environment says that Python shouldn't: each would compile tpucc again, which
    takes a quarter of their time. It lies beside pytest's own cache. A shell that starts tests in the background lets Ctrl-C be ignored,
    and then children ignore the one that a test sends.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("COLUMNS", None)  # tables would be as wide
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(config.rootpath / ".pytest_cache" / "bytecode"))
    if config.getoption("--soak"):
        from hypothesis import settings

        settings.register_profile("soak", max_examples=2_500)
        settings.load_profile("soak")
    gc.disable()


def pytest_collection_finish() -> None:
    """What collecting has made stays until the end: no search for garbage looks through it, and searches are rarer than Python's."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--soak"):
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if not item.get_closest_marker("soak")]


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source file of the small model, alone in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.tpu").write_text(SMALL)
    return tmp_path / "small.tpu"
