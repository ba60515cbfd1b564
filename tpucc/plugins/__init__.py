"""Code that the user brings, passes and stages: it is run with care, and what goes wrong in it is its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

last_resort: Callable[[Exception], NoReturn] | None = None
"""Ends the process with this error: for code that is still in one call into C when its time is up. The command line sets it; where tpucc is
a part of another program, such as a notebook, that call is waited for."""

leave = os._exit
"""Ends the process at once, also while code of the user's runs, for which `os._exit` is another function."""


def _no_last_resort() -> None:
    global last_resort
    last_resort = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_no_last_resort)  # a copy of the command's process isn't the command
