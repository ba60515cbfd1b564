"""Compile times of this checkout beside another one's: `bench.py --against ../other`.

Each compilation has a process of its own, and the two checkouts take turns. Times are CPU seconds, without starting Python and importing
tpucc, and of each the smallest counts: so other work on the machine disturbs least.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
ROUNDS = 5
PASSES = "passes"
STAGES = ("parse", "elaborate", "weights", PASSES, "lower", "schedule", "verify")
"""As the driver names them; all passes together are one."""
COMPILE = """
import json, sys, time
time.perf_counter = time.process_time  # by which the driver times its stages
import tpucc, tpucc.api
started = time.process_time()
exe = tpucc.compile(sys.argv[1], params=json.loads(sys.argv[2]))
print(json.dumps([("all", time.process_time() - started), *((s.stage, s.seconds) for s in exe.compilation.snapshots)]))
"""
Times = dict[str, float]
"""CPU seconds of each stage, and of `all`."""
Cases = Mapping[str, tuple[Path, Mapping[str, object]]]
"""Of each case the source and its params."""


def compare(other: Path, cases: Cases) -> None:
    """Prints a table for each case: both times of each stage, in seconds, and their ratio."""
    print(f"compile: CPU seconds here and in {other}, the least of {ROUNDS}, and their ratio")
    print(f"  {'':<24} {'here':>8} {'there':>8} {'ratio':>6}")
    for name, (source, params) in cases.items():
        ours, theirs = _least(other.resolve(), source, params)
        for stage in ("all", *STAGES):
            label = name if stage == "all" else f"  {stage}"
            print(f"  {label:<24} {ours[stage]:8.3f} {theirs[stage]:8.3f} {ours[stage] / max(theirs[stage], 1e-9):6.2f}")


def _least(other: Path, source: Path, params: Mapping[str, object]) -> tuple[Times, Times]:
    """The times here and there."""
    least: dict[Path, Times] = {HERE: {}, other: {}}
    for turn in range(ROUNDS):
        for checkout in (HERE, other) if turn % 2 else (other, HERE):
            times = _times(checkout, source, params)
            least[checkout] = {stage: min(seconds, least[checkout].get(stage, seconds)) for stage, seconds in times.items()}
    return least[HERE], least[other]


def _times(checkout: Path, source: Path, params: Mapping[str, object]) -> Times:
    """One compilation by a checkout, with its own environment where it has one."""
    own = checkout / ".venv" / "bin" / "python"
    python = own if own.exists() else Path(sys.executable)
    command = [str(python), "-c", COMPILE, str(source), json.dumps(params)]
    done = subprocess.run(command, cwd=checkout, env=os.environ | {"PYTHONPATH": str(checkout)}, stdout=subprocess.PIPE, check=True)
    times = dict.fromkeys(("all", *STAGES), 0.0)
    for stage, seconds in json.loads(done.stdout):
        times[stage if stage in times else PASSES] += seconds
    return times
