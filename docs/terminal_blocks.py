"""Terminal sessions in the book: what stands under a line `$ tpucc …` in a `text` block is what the command prints."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

from tpucc.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(?<=```text\n)\$ tpucc (?P<command>[^\n]*)\n.*?(?=```)", re.DOTALL)


def with_outputs(page: str) -> str:
    """The page with the output of each of its commands."""
    return BLOCK.sub(lambda found: f"$ tpucc {found['command']}\n{printed(found['command'])}", page)


def printed(command: str) -> str:
    """What `tpucc COMMAND` prints on standard output, in the folder of the project. Raises `RuntimeError` when it fails."""
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as stream:
        status = main(shlex.split(command))
    if status:
        raise RuntimeError(f"tpucc {command} ends with status {status}")
    return stream.getvalue()
