"""Pausing Python's cyclic garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the cyclic collector, which looks through all objects again and again as they become more.

    Trees, graphs and tile programs are made of many objects and of no cycles: what is dropped is freed at once all the same.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
