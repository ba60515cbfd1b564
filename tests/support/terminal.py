"""Running Python on a pseudo-terminal, and what a terminal's screen shows of the bytes it got."""

from __future__ import annotations

import os
import re
import subprocess
import sys

CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


def on_a_terminal(arguments: list[str], **environment: str) -> str:
    """All that Python with these arguments writes to its terminal; it must end well."""
    import pty  # POSIX only

    ours, theirs = pty.openpty()
    settings = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **environment}
    with subprocess.Popen([sys.executable, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=settings) as process:
        os.close(theirs)
        parts = []
        while part := _read(ours):
            parts.append(part)
        assert process.wait() == 0, b"".join(parts).decode()
    os.close(ours)
    return b"".join(parts).decode()


def screen(raw: str) -> list[str]:
    """The lines left on the screen: cursor up, carriage return and erasing a line are obeyed, colours and modes skipped."""
    lines, row, column = [""], 0, 0
    for codes, letter, back, down, text in CONTROL.findall(raw):
        if back:
            column = 0
        elif down:
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif text:
            lines[row] = lines[row].ljust(column)[:column] + text + lines[row][column + len(text) :]
            column += len(text)
        elif letter == "A":
            row -= int(codes or 1)
        elif letter == "K":
            lines[row] = ""
    return [line.rstrip() for line in lines if line.strip()]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # Linux says so when the other end is closed
        return b""
