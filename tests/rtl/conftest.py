"""The hardware's tests need PyRTL. It takes a quarter of a second to import, so that no module of tests imports it at its head."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def rtl() -> ModuleType:
    """`tests.support.rtl`; without PyRTL the test is skipped."""
    if find_spec("pyrtl") is None:
        pytest.skip("PyRTL is not installed")
    from tests.support import rtl

    return rtl
