"""Options of the test suite."""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import Generator
from pathlib import Path
from zlib import crc32

import pytest

from tests.support.examples import SOAKED
from tests.support.seeds import LARGEST, SHARE, VARIABLE, run_seed, share, shared

CASES = "random cases"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected outputs instead of comparing")
    parser.addoption("--soak", action="store_true", help="run the long random tests too")
    parser.addoption("--long-one-in", type=int, default=1, metavar="N", help="of the long tests, run one in N, chosen by their names")
    parser.addoption("--share", type=int, default=100, metavar="PERCENT", help="of the random cases of a soak, run so many of a hundred")
    parser.addoption("--seed", type=int, help=f"the seed of random tests in a soak, 1 to {LARGEST:,}; another one in each run if not given")


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
    if not hasattr(config, "workerinput"):  # a worker has what it inherits
        seed = config.getoption("--seed") or (random.randint(1, LARGEST) if config.getoption("--soak") else 0)
        os.environ |= {VARIABLE: str(seed), SHARE: str(config.getoption("--share"))}
    _set_up_hypothesis(soak=config.getoption("--soak"))
    gc.disable()


def _set_up_hypothesis(soak: bool) -> None:
    """The same cases in each ordinary run; in a soak those of its seed."""
    from hypothesis import core, settings

    settings.register_profile("usual", derandomize=True, database=None, deadline=None)
    # Where the variable CI is set, a profile is without chance unless it says otherwise.
    settings.register_profile("soak", max_examples=shared(SOAKED), derandomize=False, database=None, deadline=None, print_blob=True)
    settings.load_profile("soak" if soak else "usual")
    if soak:
        core.global_force_seed = run_seed()


def pytest_collection_finish() -> None:
    """What collecting has made stays until the end: no search for garbage looks through it, and searches are rarer than Python's."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--soak"):
        return
    of = config.getoption("--long-one-in")
    left_out: dict[bool, list[pytest.Item]] = {False: [], True: []}
    for item in items:
        others = item.get_closest_marker("long") is not None and crc32(item.nodeid.encode()) % of > 0
        left_out[item.get_closest_marker("soak") is not None or others].append(item)
    config.hook.pytest_deselected(items=left_out[True])
    items[:] = left_out[False]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A report of a random test in a soak has how many cases it is for, and if it failed the line that repeats it."""
    report = yield
    if not (seed := run_seed()) or report.when != "call":
        return report
    seeds = item.callspec.params.get("seeds", ()) if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    drawn = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
    if count := len(seeds) or (drawn.max_examples if drawn else 0):
        report.user_properties.append((CASES, count))
    if report.failed:
        report.sections.append(("to repeat it", f".venv/bin/python -m pytest --soak --seed {seed} --share {share()} '{item.nodeid}'"))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The seed of a soak and how many random cases it had: one line, which `tests/soak.py` reads too."""
    if seed := run_seed():
        reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ()) if report.when == "call"]
        cases = sum(count for report in reports for name, count in report.user_properties if name == CASES)
        terminalreporter.write_line(f"{cases:,} random cases, of seed {seed}")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source file of the small model, alone in the working directory."""
    from tests.support.command_line import SMALL  # the core's tests run without a command line

    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.tpu").write_text(SMALL)
    return tmp_path / "small.tpu"
