"""Tasks computed by the workers of a Dask cluster. Needs the extra `dask`."""

from __future__ import annotations

import logging
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from tpucc.diagnostics import Diagnostic, Error, UsageError
from tpucc.tasks.work import Given, Noted, Result, Work, refused
from tpucc.version import VERSION

PATIENCE = 10
"""Seconds in which a scheduler has to answer, and after which it is said that a cluster has no workers."""
LOGGERS = ("asyncio", "bokeh", "dask", "distributed", "tornado")
"""Those of Dask and of what it stands on, with all that are named after them."""


def computed_on_cluster(
    work: Work[Result], chunks: Sequence[Sequence[int]], given: Given, address: str, noted: Noted
) -> Iterator[tuple[int, Result]]:
    """The tasks of all chunks with their results, as they are done. Dask gives the work of a worker that is lost to another one; where none
    is left, the tasks wait for one, and `noted` gets a sentence that says so.

    Raises `UsageError` E0562 without the extra, without an answer from the scheduler or when it goes, and when a worker can't take part.
    """
    distributed = _distributed()
    with _silent():
        try:
            client = _connected(distributed, address)
        except (OSError, ValueError, TypeError) as error:
            raise refused(f"no scheduler answers at {address}: {str(error).partition(chr(10))[0] or type(error).__name__}") from None
        with client, _watched(client, address, noted):
            try:
                yield from _followed(distributed, client, work, chunks, given)
            except (distributed.CancelledError, OSError):  # Dask's error of a closed connection is an OSError
                raise refused(
                    f"the scheduler at {address} has gone; what is done is kept, and the same command goes on from there"
                ) from None


@contextmanager
def _silent() -> Iterator[None]:
    """Dask logs the errors that it raises too, with tracebacks of its threads. What they mean is said once, as an error of tpucc."""
    loggers = [logger for name, logger in logging.root.manager.loggerDict.items() if name.partition(".")[0] in LOGGERS]
    heard = [logger for logger in loggers if isinstance(logger, logging.Logger) and not logger.disabled]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=rf"({'|'.join(LOGGERS)})\b")
        for logger in heard:
            logger.disabled = True
        try:
            yield
        finally:
            for logger in heard:
                logger.disabled = False


def _connected(distributed: Any, address: str) -> Any:
    """A client of the scheduler. Dask would wait without an end for a server that is no scheduler, as the dashboard is, so that it is asked
    in a thread. Raises `OSError`, and what Dask raises."""
    found = Future[Any]()

    def connect() -> None:
        try:
            found.set_result(distributed.Client(address, timeout=PATIENCE, set_as_default=False))
        except Exception as error:
            found.set_exception(error)

    Thread(target=connect, daemon=True).start()
    try:
        return found.result(1.2 * PATIENCE)
    except TimeoutError:
        if not found.done():
            raise OSError(f"what listens there says nothing that a scheduler says, within {PATIENCE} s") from None
        raise


@contextmanager
def _watched(client: Any, address: str, noted: Noted) -> Iterator[None]:
    """Notes once in a while in which a cluster has no workers that it has none."""
    over = Event()

    def watch() -> None:
        had = True
        while not over.wait(PATIENCE):
            with suppress(Exception):  # a scheduler that has gone is met elsewhere
                has = bool(client.nthreads())
                if had and not has and not over.is_set():
                    noted(f"the cluster has no workers; the rest waits until there is one, as by `dask worker {address}`")
                had = has

    Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


class _Call:
    """A call of `compute` on a worker: unpickling it is the call. A function of tpucc as such would end workers that don't have tpucc."""

    def __init__(self, *arguments: object) -> None:
        self._arguments = arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return compute, self._arguments


def _followed(
    distributed: Any, client: Any, work: Work[Result], chunks: Sequence[Sequence[int]], given: Given
) -> Iterator[tuple[int, Result]]:
    pickled = pickle.dumps(work)

    def submitted(chunk: Sequence[int]) -> Any:
        call = _Call(VERSION, pickled, [(number, given(number)) for number in chunk])
        return client.submit(pickle.loads, pickle.dumps(call), key=f"tpucc-{uuid4().hex}")

    tasks = {submitted(chunk): list(chunk) for chunk in chunks}
    waiting = distributed.as_completed(list(tasks), loop=client.loop)
    try:
        for future in waiting:
            chunk = tasks.pop(future)
            try:
                yield from _results(future)
            except distributed.KilledWorker:
                if len(chunk) == 1:
                    yield chunk[0], work.lost("the workers that computed it ended")
                for number in chunk if len(chunk) > 1 else ():
                    again = submitted([number])
                    tasks[again] = [number]
                    waiting.add(again)
            future.release()
    finally:
        with suppress(Exception):  # a scheduler that has gone can't be told
            client.cancel(list(tasks))


def _results(future: Any) -> Any:
    """What a worker returned. Raises `UsageError` E0562 where it has no tpucc that can be used, and what it and Dask raise."""
    try:
        return future.result()
    except (ImportError, AttributeError) as error:
        raise refused(f"a worker can't use tpucc: {str(error).partition(chr(10))[0]}") from None


_kept: dict[bytes, Callable[[Any], Any]] = {}
"""The function of the work that this worker is at."""


def compute(version: str, work: bytes, tasks: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """The results of these tasks of the pickled `work`, on a worker. Raises `UsageError` E0562 where this is another tpucc, or the work
    can't be done here."""
    if version != VERSION:
        raise refused(f"a worker has another version of tpucc: {VERSION}, not {version}")
    if (begun := _kept.get(work)) is None:
        try:
            begun = pickle.loads(work).begun()
        except Error as error:
            found = error.diagnostics[0]
            raise error if found.code == "E0562" else refused(f"a worker can't take part: {found.message}") from None
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
