"""From tile program to machine program: addresses, prefetch, synchronisation."""

from __future__ import annotations

from tpucc.schedule.pipeline import require_fitting, schedule

__all__ = ["require_fitting", "schedule"]
