"""From tile program to machine program: addresses, prefetch, synchronisation."""

from __future__ import annotations

from tpucc.schedule.pipeline import schedule

__all__ = ["schedule"]
