"""Archives that are hostile or unlucky get a clear error, before anything large is unpacked."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.data.archive import Archive, npz_bytes, read_arrays
from tpucc.diagnostics import InputError, UsageError


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


def archive(path: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in members:
            file.writestr(name, data)
    return path


def test_an_archive_is_what_numpy_writes_and_has_arrays_of_any_name() -> None:
    given = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b/c": np.float32(2), "é": np.zeros((0, 3))}
    np.savez(stream := io.BytesIO(), **given)  # type: ignore[arg-type]
    assert npz_bytes(given) == stream.getvalue()
    named = dict.fromkeys(("file", "args", "kwds", "allow_pickle", "self"), np.float32([1]))
    with np.load(io.BytesIO(npz_bytes(named))) as archive:
        assert archive.files == list(named)


def test_arrays_come_back_equal(tmp_path: Path) -> None:
    given = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "f": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "s": np.float32(2),
        "e": np.zeros((0, 3)),
    }
    (path := tmp_path / "x.npz").write_bytes(npz_bytes(given))
    read = read_arrays(path)
    assert list(read) == list(given)
    for key, value in given.items():
        np.testing.assert_array_equal(read[key], value)


def test_columns_may_come_first(tmp_path: Path) -> None:
    """As NumPy saves an array of which columns lie together."""
    given = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.savez(tmp_path / "x.npz", f=given)
    with Archive(tmp_path / "x.npz") as opened:
        assert opened.members["f"].fortran_order
        np.testing.assert_array_equal(opened.read("f"), given)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"E0420.*nowhere\.npz"):
        Archive(tmp_path / "nowhere.npz")


@each(
    [
        ([("x.npy", npy(np.array([{}], dtype=object)))], "pickled objects"),
        ([("x.npy", npy(np.zeros(3))[:-4])], "header promises"),
        ([("x.npy", npy(np.zeros(3)) + b"more")], "header promises"),
        ([("x.npy", b"\x93NUMPY\x01\x00\xff\xff{")], "no readable array header"),
        ([("x.npy", b"no array")], "no readable array header"),
        ([("x.npy", npy(np.zeros(3, np.float32)).replace(b"'<f4'", b"'|V0'"))], "elements of no bytes"),
        ([("x.npy", npy(np.zeros((1,) * 33, np.float32)))], "33 dimensions; the limit is 32"),
        ([("x.txt", b"")], "isn't an array"),
        ([("../x.npy", npy(np.zeros(3)))], "leaves the archive"),
        ([("/x.npy", npy(np.zeros(3)))], "leaves the archive"),
    ]
)
def test_malformed_members_are_named(members: list[tuple[str, bytes]], words: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", members)
    with pytest.raises(InputError, match=words):
        read_arrays(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_members_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", [("x.npy", npy(np.zeros(3))), ("x.npy", npy(np.ones(3)))])
    with pytest.raises(InputError, match="there twice"):
        read_arrays(path)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """A header of three numbers before a gigabyte of zeros: reading stops after what the header promises."""
    bomb = npy(np.zeros(3, np.float32)) + bytes(50_000_000)
    path = archive(tmp_path / "x.npz", [("x.npy", bomb)], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match="header promises"):
        read_arrays(path)


def test_a_header_that_promises_too_much_is_refused(tmp_path: Path) -> None:
    head = npy(np.zeros(8, np.float32)).replace(b"(8,)", b"(8000000000000,)".ljust(4))
    path = archive(tmp_path / "x.npz", [("x.npy", head)])
    with pytest.raises(InputError, match=r"limit|header"):
        read_arrays(path)


@each([0, 1, 10, 50, 100, 150])
def test_truncated_files_are_malformed(cut: int, tmp_path: Path) -> None:
    data = npz_bytes({"x": np.zeros(3, np.float32)})
    (path := tmp_path / "x.npz").write_bytes(data[:cut])
    with pytest.raises(InputError, match="E0421"):
        read_arrays(path)


def test_flipped_bytes_never_surprise(tmp_path: Path) -> None:
    data = npz_bytes({"x": np.arange(30, dtype=np.float32), "y": np.zeros((2, 2), np.float32)})
    path, refused = tmp_path / "x.npz", 0
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :])
        try:
            read_arrays(path)
        except InputError as error:
            assert error.exit_status == 3  # noqa: PT017
            refused += 1
    assert refused > len(data) / 2


HEADER = "{{'descr': {0}, 'fortran_order': False, 'shape': {1}}}"


@each([("('<f4', (2,))", "(3,)", 24), ("'<f4'", "(1099511627776, 0, 1099511627776)", 0), ("'|b1'", "(True,)", 1)])
def test_an_array_that_numpy_cannot_make_is_malformed(kind: str, shape: str, size: int, tmp_path: Path) -> None:
    text = HEADER.format(kind, shape).encode()
    data = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + bytes(size)
    with pytest.raises(InputError, match="E0421"):
        read_arrays(archive(tmp_path / "x.npz", [("x.npy", data)]))


def test_each_kind_of_compression_may_be_damaged(tmp_path: Path) -> None:
    """An encrypted member says that it is one."""
    values = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    for kind in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = archive(tmp_path / "x.npz", [("x.npy", npy(values))], kind)
        data = bytearray(path.read_bytes())
        data[9000:9040] = bytes(40)
        path.write_bytes(data)
        with pytest.raises(InputError, match="E0421"):
            read_arrays(path)
    data = bytearray(archive(tmp_path / "x.npz", [("x.npy", npy(values))]).read_bytes())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"can't be unpacked \(.*encrypted"):
        read_arrays(path)
