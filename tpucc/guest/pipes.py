"""A child's process, its three pipes, and the threads that read what it sends."""

from __future__ import annotations

import os
import queue
import select
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import IO

from tpucc.guest.jails import LONGEST, OWN, OWN_LONGEST, Cell, Jail
from tpucc.plugins.failures import Failed
from tpucc.plugins.printed import KEPT

READS = 16
"""Reads of 64 KiB that find what was printed before an answer: no pipe holds more than 1 MiB, and others may go on printing."""
DUMPS = (b"Fatal Py", b"Current ", b"Thread 0", b"Stack (m")
"""The first bytes of the texts of `faulthandler`."""
WRITING = 1.0
"""Seconds in which `faulthandler` writes."""
DUMPED = 2**16
"""Bytes of a text of `faulthandler` that are read."""


class Dumped(Failed):
    """A process that has ended with a text of `faulthandler`, which says where its code was."""

    def __init__(self, ended: Failed, text: str) -> None:
        super().__init__(ended.kind, ended.message)
        self.text = text


class Pipes:
    """One process and the threads that read what it sends."""

    def __init__(self, jail: Jail, cell: Cell, modules: tuple[str, ...], told: Callable[[str], object] | None) -> None:
        self._jail, self._cell, self._told = jail, cell, told
        self._longest = OWN_LONGEST if jail is OWN else LONGEST
        config = {"modules": modules, "warm": False}
        self._process = subprocess.Popen(
            jail.command(cell, config),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=jail.environment(),
            cwd=cell.folder,
            start_new_session=True,
        )
        self._answers: queue.Queue[bytes | Failed] = queue.Queue(maxsize=4)
        self._text, self._lost = bytearray(), 0
        self._reading = threading.Lock()
        self._over = False
        self._writing = threading.Thread()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._read_answers, self._read_text)]
        for thread in self._threads:
            thread.start()

    def send(self, request: bytes) -> None:
        """Begins to write a request: a child that reads nothing holds up a thread only, and `receive` waits as long as allowed."""
        framed = len(request).to_bytes(8, "big") + request
        self._writing = threading.Thread(target=self._write, args=(framed,), daemon=True)
        self._writing.start()

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        rest = memoryview(data)
        with suppress(OSError):  # it has ended: `receive` says so
            while rest:
                rest = rest[os.write(self._process.stdin.fileno(), rest) :]

    def receive(self, seconds: float) -> bytes:
        """The next answer, which counts only once the request is read. Raises `Failed`."""
        start = monotonic()
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            answer = self._dumped()
        if self._writing.ident is not None:
            self._writing.join(max(0.0, start + seconds - monotonic()))
        if self._writing.is_alive():
            raise Failed("time", "")
        with self._reading:
            self._take_ready()
        if isinstance(answer, Failed):
            raise answer
        return answer

    def _dumped(self) -> Failed:
        """What a process that doesn't answer says of where it is, once it is ended: the handler of the signal is written in C. A jail hands
        no signal on."""
        if os.name == "posix" and not self._jail.keeps_secrets:
            with suppress(queue.Empty):
                os.kill(self._process.pid, signal.SIGXCPU)
                if isinstance(answer := self._answers.get(timeout=WRITING), Dumped):
                    return Dumped(Failed("time", ""), answer.text)
        return Failed("time", "")

    def printed(self) -> tuple[str, int]:
        """What was printed since this was asked, and how many bytes more are not kept. A child prints before it answers: all that it did
        before its last answer is among it."""
        with self._reading:
            self._take_ready()
            text, lost = self._text.decode("utf-8", "replace"), self._lost
            self._text.clear()
            self._lost = 0
        return text, lost

    def end(self) -> None:
        """Ends the process, its group, and whatever else the jail holds. Raises `Left`."""
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        try:
            self._jail.end(self._cell)
        finally:
            self._close()

    def _close(self) -> None:
        """Ends the threads, and closes the pipes. Who waits in another thread for an answer gets none."""
        self._over = True
        with suppress(queue.Full):
            self._answers.put_nowait(Failed("ended", "was ended"))
        for stream, thread in ((self._process.stdout, self._threads[0]), (self._process.stderr, self._threads[1])):
            thread.join(2)
            with self._reading:  # another thread may be asking what was printed
                if stream and not thread.is_alive():  # without a jail, something that the child started may still hold it
                    stream.close()
        if self._writing.ident is not None:
            self._writing.join(2)
        if self._process.stdin and not self._writing.is_alive():
            with suppress(OSError):
                self._process.stdin.close()

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        answer: bytes | Failed = b""
        while not isinstance(answer, Failed) and not self._over:
            answer = self._frame(self._process.stdout)
            while not self._over:  # a child that answers without being asked waits
                with suppress(queue.Full):
                    self._answers.put(answer, timeout=0.2)
                    break

    def _frame(self, stream: IO[bytes]) -> bytes | Failed:
        """The bytes of the next answer: who asks for it decodes it, so that answers without a question take no more memory than these."""
        try:
            head = stream.read(8)
            size = int.from_bytes(head, "big")
            if len(head) < 8:
                return self._ended()
            if head in DUMPS:
                return Dumped(self._ended(), (head + stream.read(DUMPED)).decode("utf-8", "replace"))
            if size > self._longest:
                return Failed("result", "gave an answer that can't be read")
            return stream.read(size)
        except Exception:
            return Failed("result", "gave an answer that can't be read")

    def _ended(self) -> Failed:
        """How the process ended. The kernel's limit of processor time is a signal, and where a jail's own process hands it on, a status."""
        try:
            status = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return Failed("ended", "ended its process without an answer")
        number = status - 128 if self._jail.keeps_secrets and status > 128 else -status
        if os.name != "posix" or number not in set(signal.Signals):
            return Failed("ended", f"ended its process without an answer (exit status {status})")
        if number == signal.SIGXCPU:
            return Failed("time", "processor")
        return Failed("ended", f"ended its process without an answer (signal {signal.Signals(number).name})")

    def _read_text(self) -> None:
        assert self._process.stderr is not None
        with suppress(OSError, ValueError):
            going = True
            while going:
                if os.name == "posix":
                    select.select([self._process.stderr], [], [])
                    with self._reading:
                        going = not self._ready() or self._take()
                else:
                    going = self._take()

    def _take_ready(self) -> None:
        """Reads what has been printed and not been read."""
        for _ in range(READS):
            if not (self._ready() and self._take()):
                break

    def _ready(self) -> bool:
        """Whether something printed can be read, or no more will come. Windows can't ask that of a pipe."""
        stream = self._process.stderr
        return os.name == "posix" and stream is not None and not stream.closed and bool(select.select([stream], [], [], 0)[0])

    def _take(self) -> bool:
        """Reads what the process has printed; False at its end."""
        assert self._process.stderr is not None
        data = os.read(self._process.stderr.fileno(), 65536)
        if self._told is not None:
            self._told(data.decode("utf-8", "replace"))
            return bool(data)
        kept = data[: max(0, 4 * KEPT - len(self._text))]
        self._text += kept
        self._lost += len(data) - len(kept)
        return bool(data)
