"""Tasks computed by the workers of a Dask cluster. Needs the extra `dask`."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tpucc
from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.tasks.work import Given, Result, Work, refused

PATIENCE = 10
"""Seconds in which a scheduler has to answer."""


def computed_on_cluster(work: Work[Result], chunks: Sequence[Sequence[int]], given: Given, address: str) -> Iterator[tuple[int, Result]]:
    """The tasks of all chunks with their results, as they are done. Dask gives the work of a worker that is lost to another one.

    Raises `UsageError` E0562 without the extra, without an answer from the scheduler or when it goes, and when a worker can't take part.
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise refused(f"no scheduler answers at {address}: {str(error).partition(chr(10))[0] or type(error).__name__}") from None
    with client:
        try:
            yield from _followed(distributed, client, work, chunks, given)
        except (distributed.CancelledError, OSError):  # Dask's error of a closed connection is an OSError
            raise refused(f"the scheduler at {address} has gone; what is done is kept, and the same command goes on from there") from None


def _followed(
    distributed: Any, client: Any, work: Work[Result], chunks: Sequence[Sequence[int]], given: Given
) -> Iterator[tuple[int, Result]]:
    pickled = pickle.dumps(work)

    def submitted(chunk: Sequence[int]) -> Any:
        return client.submit(compute, tpucc.__version__, pickled, [(number, given(number)) for number in chunk], pure=False)

    tasks = {submitted(chunk): list(chunk) for chunk in chunks}
    waiting = distributed.as_completed(list(tasks), loop=client.loop)
    try:
        for future in waiting:
            chunk = tasks.pop(future)
            try:
                yield from future.result()
            except distributed.KilledWorker:
                if len(chunk) == 1:
                    yield chunk[0], work.lost("the workers that computed it ended")
                for number in chunk if len(chunk) > 1 else ():
                    again = submitted([number])
                    tasks[again] = [number]
                    waiting.add(again)
            future.release()
    finally:
        with contextlib.suppress(Exception):  # a scheduler that has gone can't be told
            client.cancel(list(tasks))


_kept: dict[bytes, Callable[[Any], Any]] = {}
"""The function of the work that this worker is at."""


def compute(version: str, work: bytes, tasks: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """The results of these tasks of the pickled `work`, on a worker. Raises `UsageError` E0562 where this is another tpucc, or the work
    can't be done here."""
    if version != tpucc.__version__:
        raise refused(f"a worker has another version of tpucc: {tpucc.__version__}, not {version}")
    if (begun := _kept.get(work)) is None:
        begun = pickle.loads(work).begun()
        _kept.clear()
        _kept[work] = begun
    return [(number, begun(given)) for number, given in tasks]


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        mend = "python -m pip install 'tpucc[dask]' installs it; without --scheduler this machine does the work"
        raise UsageError(Diagnostic("E0562", f"--scheduler needs a package that isn't installed: {error.name}", help=(mend,))) from None
    return distributed
