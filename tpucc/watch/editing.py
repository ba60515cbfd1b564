"""The watched source as the page reads and writes it. The file is the truth: a text is saved only over the text that it was made from."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from threading import Lock

from tpucc.diagnostics import Diagnostic, UsageError
from tpucc.files import read_file
from tpucc.output_files import write_file
from tpucc.watch.loopback import LARGEST


class ChangedError(Exception):
    """The file has other bytes than those that the edited text was made from."""


class GoneError(Exception):
    """The file isn't there any more."""


GONE = '"gone"'
"""The tag of a file that isn't there."""


class Edited:
    """A source file, read and written by the threads of the requests. Contents come with their tag, which differs when a byte does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saving = Lock()

    def read(self) -> tuple[bytes, str]:
        """The file as UTF-8, and its tag. Raises `GoneError`; `UsageError` where it can't be read, or isn't UTF-8; and `LimitError`."""
        if not os.path.lexists(self._path):
            raise GoneError(f"{self._path.name} has been deleted")
        content = read_file(self._path, most=LARGEST)
        self._require_utf8(content, "it has")
        return content, f'"{hashlib.sha256(content).hexdigest()[:16]}"'

    def write(self, text: bytes, known: str) -> tuple[bytes, str]:
        """The file after it has this text in place of the one with the tag `known`; its line ends and its mode stay, and a link stays one.
        One that has been deleted, and is known to be `GONE`, is written anew.

        Raises `ChangedError`, and what `read` and `write_file` raise.
        """
        self._require_utf8(text, "this is")
        with self._saving:
            gone = not os.path.lexists(self._path)
            old, tag = (b"", GONE) if gone else self.read()
            if tag != known:
                raise ChangedError(f"not saved: {self._path.name} has changed on the disk")
            if gone:
                write_file(self._path, text)
                return self.read()
            place = Path(os.path.realpath(self._path))
            mode = stat.S_IMODE(place.stat().st_mode)
            write_file(place, text.replace(b"\n", b"\r\n") if b"\r\n" in old else text)
            place.chmod(mode)
            return self.read()

    def _require_utf8(self, content: bytes, what: str) -> None:
        try:
            content.decode()
        except UnicodeDecodeError:
            raise UsageError(Diagnostic("E0504", f"can't edit {self._path}: {what} text that is not UTF-8")) from None
