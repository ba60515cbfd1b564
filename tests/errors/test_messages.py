"""Bad programs and what a student reads: each `NAME.tpu` here gives exactly the message in `NAME.txt`.

`make golden` rewrites the messages; read them in the diff as somebody who doesn't know the compiler.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tpucc
from tests.support.cases import each

FOLDER = Path(__file__).parent
PROGRAMS = sorted(FOLDER.glob("*.tpu"))


def test_there_are_at_least_eighty() -> None:
    assert len(PROGRAMS) >= 80


@each({path.stem: (path,) for path in PROGRAMS})
def test_message(path: Path, update_golden: bool) -> None:
    with pytest.raises((tpucc.CompileError, tpucc.LimitError)) as caught:
        tpucc.compile(path)
    text = f"{caught.value.render()}\n"
    golden = path.with_suffix(".txt")
    if update_golden:
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")
    assert all(d.labels for d in caught.value.diagnostics)
