"""Points computed by the workers of a Dask cluster, which see the models' files by the same names. Needs the extra `dask`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.sweeps.plan import Plan
from tpucc.sweeps.processes import Found
from tpucc.sweeps.rows import failed, measured
from tpucc.sweeps.shared import Compiler

PATIENCE = 10
"""Seconds in which a scheduler has to answer."""


def computed_on_cluster(plan: Plan, chunks: Sequence[Sequence[int]], address: str) -> Iterator[Found]:
    """The points of all chunks with their rows, as they are done. Dask gives the work of a worker that is lost to another one.

    Raises `UsageError` E0562 without the extra, without an answer from the scheduler, and when a worker sees other files or another tpucc.
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise _refused(f"no scheduler answers at {address}: {str(error).partition(chr(10))[0] or type(error).__name__}") from None
    with client:
        yield from _followed(distributed, client, plan, chunks)


def _followed(distributed: Any, client: Any, plan: Plan, chunks: Sequence[Sequence[int]]) -> Iterator[Found]:
    identity = plan.identity
    points = {client.submit(compute, plan, identity, list(chunk), pure=False): list(chunk) for chunk in chunks}
    waiting = distributed.as_completed(list(points), loop=client.loop)
    try:
        for future in waiting:
            chunk = points.pop(future)
            try:
                yield from future.result()
            except distributed.KilledWorker:
                if len(chunk) == 1:
                    yield chunk[0], failed("E0613", "the workers that computed it ended")
                for point in chunk if len(chunk) > 1 else ():
                    again = client.submit(compute, plan, identity, [point], pure=False)
                    points[again] = [point]
                    waiting.add(again)
            future.release()
    finally:
        with contextlib.suppress(Exception):  # a scheduler that has gone can't be told
            client.cancel(list(points))


_kept: dict[str, tuple[Compiler, Plan]] = {}
"""The compiler of the sweep that this worker is at."""


def compute(plan: Plan, identity: Mapping[str, Any], points: Sequence[int]) -> list[Found]:
    """The rows of these points, on a worker. Raises `UsageError` E0562 where this is another tpucc, or the files aren't the same."""
    key = repr((identity, plan))
    if key not in _kept:
        if differing := [name for name, value in plan.identity.items() if value != identity[name]]:
            what = "has another version of tpucc" if differing == ["tpucc"] else "sees other files"
            raise _refused(f"a worker {what}: {differing[0]} is {plan.identity[differing[0]]}, not {identity[differing[0]]}")
        _kept.clear()
        _kept[key] = Compiler(), plan
    compiler, own = _kept[key]
    return [(point, measured(compiler, own, point)) for point in points]


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        mend = "python -m pip install 'tpucc[dask]' installs it; without --scheduler this machine computes the points"
        raise UsageError(Diagnostic("E0562", f"--scheduler needs a package that isn't installed: {error.name}", help=(mend,))) from None
    return distributed


def _refused(text: str) -> UsageError:
    mend = "tcp://HOST:8786 is what `dask scheduler` prints; workers need this tpucc, and the models' files under the same names"
    return UsageError(Diagnostic("E0562", text, help=(mend,)))
