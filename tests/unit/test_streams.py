"""Standard output and standard error as people have them: closed, full, or with a reader who goes away; and an interrupt at any moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cases import one_of
from tests.support.command_line import SMALL, run

TPUCC = f"{sys.executable} -m tpucc"
FULL = Path("/dev/full")


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "small.tpu").write_text(SMALL)
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(
    ("command", "streams"),
    one_of(
        3,
        [
            *[("ops", ">&-"), ("ops", "2>&-"), ("check nowhere.tpu", ">&-"), ("check nowhere.tpu", "2>&-")],
            *[("compile small.tpu", ">&- 2>&-"), ("check nowhere.tpu", ">&- 2>&-")],
        ],
    ),
)
def test_closed_streams(tmp_path: Path, command: str, streams: str) -> None:
    done = shell(f"{TPUCC} {command} {streams}", tmp_path)
    assert done.returncode == (2 if "nowhere" in command else 0)
    assert "E0900" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.skipif(not FULL.exists(), reason="this system has no full device")
@pytest.mark.parametrize("command", ["ops", "check small.tpu --json"])
def test_a_full_disk_under_the_output(tmp_path: Path, command: str) -> None:
    done = shell(f"{TPUCC} {command} >{FULL}", tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("error E0505: can't write the results: the disk is full\n")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.long
@pytest.mark.skipif(not FULL.exists(), reason="this system has no full device")
def test_a_full_disk_under_the_messages(tmp_path: Path) -> None:
    assert shell(f"{TPUCC} check nowhere.tpu 2>{FULL}", tmp_path).returncode == 2


@pytest.mark.parametrize("command", one_of(2, ["ops", "disasm build/small/small.tpub"]))
def test_a_reader_who_has_seen_enough_is_no_error(tmp_path: Path, command: str) -> None:
    if command.startswith("disasm"):
        shell(f"{TPUCC} compile small.tpu --quiet", tmp_path)
    done = shell(f"set -o pipefail; {TPUCC} {command} | head -c 1", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "stream", "status"),
    [
        (["check", "bad.tpu"], "stderr", 1),
        (["check", "bad.tpu", "--json"], "stdout", 1),
        (["check", "nowhere.tpu"], "stderr", 2),
        (["check", "--nothing"], "stderr", 2),
        (["compile", "warned.tpu"], "stderr", 0),
        (["ops"], "stdout", 0),
    ],
)
def test_the_status_is_the_same_where_nobody_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], stream: str, status: int
) -> None:
    """Python's own end, which flushes once more, finds nothing that it can't write; a warning stops no work."""
    monkeypatch.chdir(tmp_path)
    Path("bad.tpu").write_text(SMALL.replace("relu", "rleu"))
    Path("warned.tpu").write_text(SMALL.replace("param units", "param unused = 1\nparam units"))
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        monkeypatch.setattr(sys, stream, closed)
        assert run(*arguments) == status
        closed.flush()
    assert Path("build/warned/warned.tpub").exists() == (arguments[0] == "compile")


@pytest.mark.parametrize("after", [0.03, 0.2])
def test_an_interrupt_while_starting_has_no_traceback(tmp_path: Path, after: float) -> None:
    (tmp_path / "small.tpu").write_text(SMALL)
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(after)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _, printed = child.communicate(timeout=100)
    assert child.returncode in (0, 130)
    assert b"Traceback" not in printed


INTERRUPTED = """
import os, signal, sys, threading
from tpucc.__main__ import main
threading.Timer(float(sys.argv[1]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
sys.argv = ["tpucc", "compile", "small.tpu", "--quiet"]
main()
"""
