"""Files in and out: what is no regular file is refused at once, and files of two runs are never seen together."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.command_line import SMALL, run
from tpucc import output_files
from tpucc.data.archive import read_arrays
from tpucc.data.safetensors import Safetensors
from tpucc.diagnostics import InputError, LimitError, UsageError
from tpucc.files import COMMIT, read_file
from tpucc.output_files import write_files

WEIGHTED = """
weights "w.npz"
model m(x: f32[3, 4]) -> f32[3, 2]:
    weight w: f32[4, 2] = "w"
    return x @ w
"""


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A pipe that nobody writes to: whoever reads it waits for ever."""
    monkeypatch.chdir(tmp_path)
    Path("small.tpu").write_text(SMALL)
    for suffix in ("tpu", "tpub", "asm", "tile", "graph", "npz", "toml", "py"):
        os.mkfifo(f"pipe.{suffix}")
    return "pipe"


@each(
    [
        "compile pipe.tpu",
        "check pipe.tpu",
        "run pipe.tpub",
        "disasm pipe.tpub",
        "asm pipe.asm",
        "compile pipe.tile --like small.tpu",
        "compile pipe.asm --like pipe.tpub",
        "opt pipe.graph",
        "compile small.tpu --weights pipe.npz",
        "compile small.tpu --calibrate pipe.npz",
        "run small.tpu --input pipe.npz",
        "compile small.tpu --target pipe.toml",
        "compile small.tpu --pass pipe.py",
        "compile small.tpu --replace order=pipe.py",
        "compile /dev/zero",
        "compile small.tpu --weights /dev/zero",
        "run /dev/zero.tpub",
    ]
)
def test_a_pipe_or_a_device_is_refused_at_once(command: str, pipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("small.tpu").write_text(WEIGHTED if "--weights" in command else SMALL)
    assert run(*command.split()) == 2
    printed = capsys.readouterr().err
    assert "is a pipe or a device, not a file" in printed or "/dev/zero.tpub" in printed


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_takes_no_place_of_a_pipe_or_a_device(pipe: str, linked: bool) -> None:
    """A rename would: of `/dev/full`, for who may write there."""
    place = Path("pipe.npz")
    if linked:
        Path("link.npz").symlink_to(place)
        place = Path("link.npz")
    for write in (lambda: write_files(Path(), {place.name: b"x"}), lambda: write_files(Path(), {place.name: b"x", "other": b"y"})):
        with pytest.raises(UsageError, match=r"E0505: can't write .*is a pipe or a device, not a file"):
            write()
    with pytest.raises(UsageError, match=r"E0505: .*not a file"), output_files.writing(place) as stream:
        stream.write(b"x")
    assert Path("pipe.npz").is_fifo()
    assert not Path("other").exists()


def test_links_in_a_circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tpu").write_text(WEIGHTED)
    Path("w.npz").symlink_to("w.npz")
    Path("self.tpu").symlink_to("self.tpu")
    assert run("compile", "m.tpu") == 2
    assert run("compile", "self.tpu") == 2
    assert capsys.readouterr().err.count("its links lead in a circle") == 2


@pytest.mark.long
def test_names_that_are_no_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that names the model names it with its odd bytes escaped."""
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9.tpu")
    Path(name).write_text(SMALL)
    tpucc = [sys.executable, "-m", "tpucc"]

    assert subprocess.run([*tpucc, "compile", name, "--emit", "asm,tpub,svg", "--json"], capture_output=True, timeout=100).returncode == 0
    (program,) = Path("build").glob("*/*.tpub")
    assert run("run", program) == 0
    assert run("profile", program.with_suffix(".asm"), "--like", name) == 0


class Killed(BaseException):
    pass


@each(range(6))
def test_a_kill_at_any_rename_leaves_files_of_one_run(after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{index}.txt" for index in range(4)]
    write_files(tmp_path, dict.fromkeys(names, b"old"))
    renames = 0

    def dying(method: Callable[..., Path]) -> Callable[..., Path]:
        def rename(path: Path, to: Path) -> Path:
            nonlocal renames
            if renames == after:
                raise Killed
            renames += 1
            return method(path, to)

        return rename

    with monkeypatch.context() as patched, pytest.raises(Killed) if after < 5 else pytest.MonkeyPatch.context():
        patched.setattr(Path, "rename", dying(Path.rename))
        patched.setattr(Path, "replace", dying(Path.replace))
        write_files(tmp_path, dict.fromkeys(names, b"new"))
    found = {read_file(tmp_path / name) for name in names}
    assert found == ({b"old"} if after == 0 else {b"new"})
    assert not (tmp_path / COMMIT).exists()
    write_files(tmp_path, dict.fromkeys(names, b"newest"))
    assert {read_file(tmp_path / name) for name in names} == {b"newest"}


def test_arrays_are_read_from_the_files_that_count_as_written(tmp_path: Path) -> None:
    """What a command that was killed has left."""
    new = tmp_path / COMMIT
    new.mkdir()
    for folder, value in ((tmp_path, 1.0), (new, 2.0)):
        np.savez(folder / "w.npz", w=np.float32(value))
        (folder / "w.safetensors").write_bytes(one_number(value))
    with Safetensors(tmp_path / "w.safetensors") as file:
        assert file.read("w") == 2
    assert read_arrays(tmp_path / "w.npz")["w"] == 2


def one_number(value: float) -> bytes:
    header = b'{"w":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}'
    return len(header).to_bytes(8, "little") + header + np.float32(value).tobytes()


@pytest.mark.parametrize("existing", [True, False])
def test_commands_that_write_into_one_folder_at_once_all_succeed(tmp_path: Path, existing: bool) -> None:
    """Threads stand for commands: each writes its own files, and in the end those of one are there."""
    folder = tmp_path / "out"
    if existing:
        folder.mkdir()

    def write(number: int) -> None:
        for _ in range(20):
            write_files(folder, {f"{index}.txt": b"%d" % number for index in range(3)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert sorted(path.name for path in folder.iterdir()) == ["0.txt", "1.txt", "2.txt"]


def test_a_new_folder_that_another_command_makes_meanwhile_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = output_files._fill

    def late(folder: Path, contents: dict[str, bytes]) -> None:
        monkeypatch.setattr(output_files, "_fill", fill)
        write_files(tmp_path / "out", {"theirs": b"1", "b": b"1"})
        fill(folder, contents)

    monkeypatch.setattr(output_files, "_fill", late)
    write_files(tmp_path / "out", {"a": b"2", "b": b"2"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"theirs": b"1", "a": b"2", "b": b"2"}


@pytest.mark.parametrize("others", [{}, {"b": b"2", "c": b"3"}])
def test_a_link_stays_one_and_its_file_is_replaced(tmp_path: Path, others: dict[str, bytes]) -> None:
    folder, place = tmp_path / "out", tmp_path / "elsewhere" / "a.html"
    folder.mkdir()
    place.parent.mkdir()
    (folder / "a").symlink_to("via")
    (folder / "via").symlink_to("../elsewhere/a.html")
    write_files(folder, {"a": b"new", **others})  # the link leads nowhere yet
    with place.open("rb") as opened:
        write_files(folder, {"a": b"newer", **others})
        assert (place.read_bytes(), opened.read()) == (b"newer", b"new")  # a reader has the file of before, to its end
    with output_files.writing(folder / "a") as stream:
        stream.write(b"newest")
    assert place.read_bytes() == b"newest"
    assert {path.name: path.is_symlink() for path in folder.iterdir()} == {"a": True, "via": True} | dict.fromkeys(others, False)
    assert [path.name for path in place.parent.iterdir()] == ["a.html"]


def test_nothing_is_written_where_a_link_can_t_be_followed(tmp_path: Path) -> None:
    for name, target in (("missing", "none/a.html"), ("circle", "circle"), ("folder", ".")):
        (tmp_path / name).symlink_to(target)
        with pytest.raises(UsageError, match="E0505"):
            write_files(tmp_path, {"a": b"1", name: b"2"})
    assert not (tmp_path / "a").exists()


def test_a_link_to_a_file_that_counts_as_written(tmp_path: Path) -> None:
    """What a command that was killed has left is moved first: by who reads the link, and by who writes there."""
    (tmp_path / "link").symlink_to("there/a")
    for act in (read_file, lambda path: write_files(path.parent, {path.name: b"new"})):
        (tmp_path / "there" / COMMIT).mkdir(parents=True, exist_ok=True)
        (tmp_path / "there" / COMMIT / "a").write_bytes(b"old")
        act(tmp_path / "link")
        assert not (tmp_path / "there" / COMMIT).exists()
    assert read_file(tmp_path / "link") == b"new"


def test_what_can_t_be_read_or_written_says_what_to_do(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("w.npz", "pre.onnx"):
        Path(name).write_bytes(b"")
    Path("mine").mkdir()
    for name in ("mine.tpu", "passes.py"):
        (Path("mine") / name).write_bytes(b"")
    for arguments, words in (
        (("check", "smal.tpu"), "no such file\nhelp: did you mean small.tpu?"),
        (("check", "SMALL.TPU"), "no such file\nhelp: did you mean small.tpu?"),
        (("check", "prex.tpu"), "no such file\nhelp: did you mean pre.onnx?"),
        (("watch", "prex.tpu"), "no such file\nhelp: did you mean pre.onnx?"),
        (("run", "pre.tpub"), "no such file\nhelp: did you mean pre.onnx?"),
        (("export", "small.onnx"), "no such file\nhelp: did you mean small.tpu?"),
        (("opt", "pre", "-p", "fuse-bias"), "no such file\nhelp: did you mean pre.onnx?"),
        (("sweep", "pre", "--set", "mxu=128"), "no such file\nhelp: did you mean pre.onnx?"),
        (("import", "pre"), "no such file\nhelp: did you mean pre.onnx?"),
        (("check", "smal.txt"), "no such file\nhelp: did you mean small.tpu?"),
        (("check", "mine/mime.tpu"), "no such file\nhelp: did you mean mine/mine.tpu?"),
        (("check", "mine.tpu"), "no such file\nhelp: did you mean mine/mine.tpu?"),
        (("check", "mines/mine.tpu"), "no such file\nhelp: did you mean mine/mine.tpu?"),
        (("check", "small.tpu", "--pass", "mine/passes.py:fold"), "no such file\nhelp: did you mean mine/passes.py?"),
        (("check", "mine"), "is a directory\nhelp: name a file in it, as mine/mine.tpu"),
        (("check", f"{'n' * 300}.tpu"), "the name is too long\n"),
        (("run", small, "--input", "ww.npz"), "no such file\nhelp: did you mean w.npz?"),
        (("run", small, "--input", "w.npz"), "\nhelp: np.savez"),
        (("check", "."), "is a directory\nhelp: name a file in it"),
        (("run", small, "--output", "."), "is a directory\nhelp: name another place"),
    ):
        assert run(*arguments) in (2, 3)
        assert words in capsys.readouterr().err
    assert run("check", "aa.tpu") == 2
    assert "did you mean" not in capsys.readouterr().err  # small.tpu has little more than its suffix in common


def test_a_full_disk_leaves_the_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"a": b"old", "b": b"old"})

    def full(path: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UsageError, match="the disk is full"):
        write_files(tmp_path, {"a": b"new", "b": b"new"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old", "b": b"old"}


def archive(path: Path, content: bytes, claimed: int | None = None, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr("w.npy", content)
    return path


def header(text: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@each(
    [
        header(b"(\n"),
        header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'a\n"),
        header(b"{" * 9000),
        header(b"-" * 9000 + b"1"),
        header(b"[" * 60_000),
        header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824,), }\n") + bytes(100),
        header(b"{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (4,), }\n") + bytes(100),
        header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (True, 2), }\n") + bytes(100),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        b"",
    ]
)
def test_an_archive_that_lies_is_refused_with_a_word(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_arrays(archive(tmp_path / "w.npz", content))
    message = str(caught.value)
    assert "E0421" in message
    assert "allow_pickle" not in message
    assert "trust" not in message


def test_an_archive_that_would_fill_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of packed zeros; the real limits are larger by the same factors."""
    monkeypatch.setattr("tpucc.data.archive.SMALL", 2**16)
    stream = io.BytesIO()
    np.save(stream, np.zeros(2**20, np.float32))
    with pytest.raises(InputError, match="as no array of values does"):
        read_arrays(archive(tmp_path / "w.npz", stream.getvalue(), method=zipfile.ZIP_DEFLATED))
    assert read_arrays(archive(tmp_path / "v.npz", stream.getvalue()))["w"].shape == (2**20,)


def test_a_file_that_grows_is_not_read_for_ever(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    with pytest.raises(LimitError):
        read_file(tmp_path / "a", most=50)
